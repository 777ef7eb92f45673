"""Hosts: where nodes run. Each owns its clock, storage, commit and transport."""
