"""What this machine and its stores offer: clocks, memory, and files that are written whole.

`drafts` writes files that appear complete or not at all, `private` makes folders that nobody else
can enter, `regular` opens files without following links, and `stores` reaches folders that several
hosts share. It knows no query: it imports nothing of Plait but its errors. Begin with `drafts`.
"""
