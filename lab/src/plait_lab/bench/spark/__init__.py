"""Plait on Spark beside its peers: the same files, each system in a process of its own.

The modules that run inside those processes (`child`, `native`) import pyspark; the others start
them, read what they say and turn it into figures.
"""
