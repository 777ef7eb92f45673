"""Sources and sinks of our own: values from Kafka, results straight into a Delta table.

`kafka` decodes values into rows; `write_delta` lets processors write the files of a table, which
`delta_table` commits once per batch. Only the modules `delta_*` import deltalake. Begin with
`write_delta`, which is also the pattern for another sink.
"""
