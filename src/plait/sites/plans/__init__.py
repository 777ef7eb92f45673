"""Plans over sites: sequences of joins (SEP), all of them together (JEP), and operator sets.

Values only, with their text and their JSON. Begin with `plan`.
"""
