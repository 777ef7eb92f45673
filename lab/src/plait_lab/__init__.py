"""How Plait is tested and measured. The product does not import it.

`laws` says what must hold and explores it, `torture` runs campaigns, `bench` measures, and
`experiments` repeats the papers' figures on the machines of `virtual`. `protocol` has the papers'
protocols message by message, `exhaustive` every plan of small queries.
"""
