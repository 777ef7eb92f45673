"""Give results the types of Spark that their columns have in the sources.

Arrow has no collations, no CHAR and no INTERVAL HOUR, so such values come out of Python as plain
strings and lengths of time. A result that is a column of a source, or a field of one, gets back
the type that it has there. So what follows the join compares it by the same rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from plait.errors import TypeMismatch
from plait.query.expr import Call, Column, Expr, Literal
from plait.query.query import Query
from plait.spark.join.aside import aside_sources
from plait.spark.join.instants import named_column
from plait.spark.join.schemas import CHAR_TYPE, parts


def read_of(query: Query, aside: bool) -> dict[str, Expr]:
    """The expression of each result column by name, also of rows set aside if there are any."""
    read: dict[str, Expr] = {output.name: output.expr for output in query.select}
    return read | aside_sources(query) if aside else read


def with_source_types(
    rows: DataFrame, read: Mapping[str, Expr], frames: Mapping[str, DataFrame]
) -> DataFrame:
    """Give columns the Spark types of the source columns that they are `read` from."""
    lost = {name: field for name, field in _sources(read, frames) if _is_lossy(field)}
    if not lost:
        return rows
    columns = []
    for name in rows.columns:
        column = named_column(name)
        if field := lost.get(name):
            if _is_other(field.dataType):
                column = column.cast(_nullable(field.dataType))
            column = column.alias(name, metadata=_char(field))
        columns.append(column)
    return rows.select(columns)


def check_plain(read: Mapping[str, Expr], frames: Mapping[str, DataFrame], where: str) -> None:
    """Refuse results whose types do not exist `where` they are to go."""
    for name, field in _sources(read, frames):
        char = _char(field).get(CHAR_TYPE, "").startswith("char(")
        if char or any(map(_is_collated, parts(field.dataType))):
            called = _char(field).get(CHAR_TYPE) or field.dataType.simpleString()
            raise TypeMismatch(
                f"the result {name} is of type {called}, and {where} would lose that",
                remedy=f"select CAST({read[name]} AS STRING) AS {name}",
            )


def _sources(
    read: Mapping[str, Expr], frames: Mapping[str, DataFrame]
) -> Iterator[tuple[str, StructField]]:
    """The source's field of each result that is a column of a source, or a field of one."""
    schemas = {stream: frame.schema for stream, frame in frames.items()}
    for name, expr in read.items():
        if (field := _source(expr, schemas)) is not None:
            yield name, field


def _source(expr: Expr, schemas: Mapping[str, StructType]) -> StructField | None:
    match expr:
        case Column(stream, name) if stream in schemas:
            return schemas[stream][name]
        case Call("field", (inner, Literal(str() as name))):
            outer = _source(inner, schemas)
            if outer is not None and isinstance(outer.dataType, StructType):
                return outer.dataType[name]
    return None


def _is_lossy(field: StructField) -> bool:
    return bool(_char(field)) or _is_other(field.dataType)


def _is_other(type_: DataType) -> bool:
    """Whether another type of Spark is left after the way through Arrow."""
    back = from_arrow_type(to_arrow_type(type_, timezone="UTC"), prefer_timestamp_ntz=True)
    return _nullable(back) != _nullable(type_)


def _nullable(type_: DataType) -> DataType:
    """The type with values within it that may be null, as in all results."""
    if isinstance(type_, ArrayType):
        return ArrayType(_nullable(type_.elementType))
    if isinstance(type_, StructType):
        return StructType([StructField(f.name, _nullable(f.dataType)) for f in type_.fields])
    return type_


def _char(field: StructField) -> dict[str, str]:
    """What Spark notes of a CHAR or VARCHAR."""
    return {k: str(v) for k, v in (field.metadata or {}).items() if k == CHAR_TYPE}


def _is_collated(type_: DataType) -> bool:
    return isinstance(type_, StringType) and not type_.isUTF8BinaryCollation()
