"""Choose a plan: statistics, the cost model, and one algorithm per file in `search`.

`choose` is the short file that shows the order in which the algorithms are tried, and why. Nothing
here runs a plan; costs are measured elsewhere and passed in. Begin with `choose`.
"""
