"""D-CAPE (seed 002): partition groups that move, and machines that re-plan for themselves.

`settings` has the cluster of ten machines in virtual time, `adaptations` figures 7, 8 and 13, and
`moves` figures 9 to 12. `scaling` goes up to 1,000 machines, and `on_spark` repeats the comparison
on Spark. Begin with `settings`.
"""
