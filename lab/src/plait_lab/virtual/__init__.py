"""Nodes on machines whose time is computed from counted operations."""
