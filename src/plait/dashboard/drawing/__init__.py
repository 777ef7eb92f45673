"""Pictures and text for pages: SVG of graphs, trees, time lines and sites; numbers for people.

Pure functions from values to markup.
"""
