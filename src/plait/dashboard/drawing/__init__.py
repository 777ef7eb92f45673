"""Draw SVG: graphs, trees, time lines and sites.

Pure functions from views to markup; `markup` escapes all text. Numbers are written by
`plait.figures`. Begin with `markup`, then `tree`.
"""
