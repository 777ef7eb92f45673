"""Engines that the Python workers of a host share, in memory-mapped files.

They are a cache of the durable state: whatever is missing, damaged or foreign costs a rebuild,
never an answer. Begin with `engines`.
"""
