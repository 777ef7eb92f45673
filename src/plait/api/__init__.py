"""What users touch: a join or a SQL text that can be explained, run here, or run on Spark.

`question` has both, with everything that can be asked of them. The names that users import are in
`plait` itself.
"""

from plait.api.question import Join, Sql, is_spark_frame, join, sql

__all__ = ["Join", "Sql", "is_spark_frame", "join", "sql"]
