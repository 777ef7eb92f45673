"""How driver and processors talk while a query runs: a directory beside its checkpoint.

The driver writes decisions and routing tables, each processor its own reports. `directory` is that
directory, `clerk` the driver's side of it, `joins` and `progress` what users ask of a running
query. Begin with `directory`.
"""
