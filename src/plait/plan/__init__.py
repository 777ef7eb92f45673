"""What runs: join trees with a probe order per input, or a router.

`jtree` has the trees, `text` reads and writes them, `explain` shows them to people, `serde` stores
them, and `diff` and `boxes` say where two of them differ. Plans are values: nothing here runs or
chooses one, and only `plait.query` is imported. Begin with `jtree`.
"""
