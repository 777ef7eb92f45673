"""The definition of a correct answer, written naively, and DuckDB as a second opinion."""
