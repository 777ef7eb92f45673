"""Run a plan in one process: one driver, and a tactic per way to find results.

Begin with `driver.Engine`, which admits rows, cuts batches into slices and emits results; `tactic`
is the contract of what it drives. `intake` encodes rows, `states` and `windows` keep them,
`tactics` probe them, and `migrate` changes the plan. Nothing here decides which plan to run.
"""
