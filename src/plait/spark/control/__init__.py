"""How driver and processors talk while a query runs: a directory beside its checkpoint.

The driver writes decisions (`epoch_files`) and routing tables (`routing_tables`), each processor
its own reports (`report_files`). `background` runs the driver's tasks, of which `driver_service` is
one; `joins` and `progress` are what users ask of a running query. Begin with `directory`.
"""
