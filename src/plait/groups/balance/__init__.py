"""The distribution manager: which groups move where, and whether it paid. Values only.

`cluster` is what the manager sees, `decide` (with `participation`, `hot_groups` and `spreading`)
which groups go where, `relocation` what is asked for and by which protocol, `move_guard` whether a
move paid, and `manager` puts them in order under a `policy`. Nothing here imports an engine or
reads a clock. Begin with `manager`.
"""
