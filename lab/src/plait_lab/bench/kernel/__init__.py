"""The engine alone, in one process: rows and results per second, beside DuckDB.

`peers` has many and few results, `scaling` longer windows, and `ways` more streams. They use the
local host and no Spark. Begin with `peers`.
"""
