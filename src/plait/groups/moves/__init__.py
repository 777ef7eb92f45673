"""How partition groups move from one processor to another without losing or repeating a result.

`messages` names what is asked for and answered, `sense` refuses moves that make none, `moving`
decides what a processor does about them, and `carrier` and `transfer` are the rows on their way.
Nothing here does I/O; hosts carry the bytes. Begin with `moving`.
"""
