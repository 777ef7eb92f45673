"""Measurements as commands: each writes its figures as JSON."""
