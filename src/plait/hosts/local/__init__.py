"""One node in this process, over sources, with nothing to store or commit."""
