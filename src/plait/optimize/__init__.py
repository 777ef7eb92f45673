"""Which plan to run: statistics, the cost model, and one algorithm per file.

`choose.py` is the short file that shows the order in which the algorithms are tried, and why.
"""
