"""SQL as a way to ask: conditions, select lists and whole queries in Spark's dialect.

This package is the only importer of sqlglot. It takes the syntax tree apart and builds values of
`plait.query`; what it does not know it refuses, by name and with the position in the text, so that
no part of a query is ever ignored. Begin with `statement`.
"""

from plait.query.sql.conditions import parse_condition
from plait.query.sql.outputs import parse_output, parse_select
from plait.query.sql.statement import parse_query

__all__ = ["parse_condition", "parse_output", "parse_query", "parse_select"]
