"""The figures and tables of the papers, one package per paper.

`cape` is seed 000, `sites` 001, `dcape` 002, `qualified` 003 and `teddies` 004. Each figure is a
function that returns a report with claims; `registry` lists them by name, `items` what the papers
have beside figures, and `reproduction` writes the page of verdicts. They may use everything in
Plait. Begin with `registry`.
"""
