"""One site: the windows of the streams that arrive there, its operators, and its links.

A site is a state machine like a node: `setup` says what it is set up with and what comes out of a
step; its host keeps what is durable. Begin with `site.py`.
"""
