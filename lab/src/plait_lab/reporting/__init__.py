"""What a measurement found, as data: series, claims, verdicts and pictures.

`report` is what a benchmark or an experiment returns, `comparisons` derives a verdict from
measurements, `catalogue` finds measurements by name, and `plot` draws them. Nothing here runs a
query. Begin with `report`.
"""
