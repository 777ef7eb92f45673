"""How Plait is tested and measured. The product does not import it.

`laws` says what must hold, generates histories and explores protocols; `torture` runs campaigns of
random queries and kills; `bench` measures Plait beside its peers, and `experiments` repeats the
papers' figures, many of them on the machines of `virtual`. `workloads` generates streams,
`protocol` has the papers' protocols message by message, `exhaustive` every plan of small queries,
and `reporting` turns measurements into claims and pictures. It may use everything in Plait. Begin
with `cli/app.py`, which lists the commands, or with `laws/checks.py`.
"""
