"""Values for one part of a page, computed from a snapshot: graph, trees, loads, a plan's preview.

Pure functions; what they return is drawn by `drawing` and `pages`. Begin with `loads`.
"""
