"""What a file of text holds, defined without Plait and Arrow: by Python's csv module and by lines.

A CSV record is what the csv module reads in strict mode. Where that fails, the line on which the
record began is malformed, and reading goes on with the next line. Empty lines are no records. A
file of JSON lines has as many rows as lines that are not blank.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from itertools import islice

csv.field_size_limit(1 << 30)

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


@dataclass(frozen=True, slots=True)
class Record:
    """A record and the line on which it begins; no fields where its quotation marks are broken."""

    line: int
    fields: tuple[str, ...] | None


def csv_records(data: bytes, delimiter: str = ",") -> list[Record]:
    """The records of a CSV file, the header included; bytes are taken for characters.

    >>> [record.fields for record in csv_records(b'k,s\\n1,"a\\nb"\\n2,"c"d\\n')]
    [('k', 's'), ('1', 'a\\nb'), None]
    """
    lines = _LINE.findall(data.removeprefix(b"\xef\xbb\xbf").decode("latin-1"))
    found, at = [], 0
    while at < len(lines):
        reader = csv.reader(islice(lines, at, None), delimiter=delimiter, strict=True)
        try:
            fields = next(reader)
        except csv.Error:
            found.append(Record(at + 1, None))
            at += 1
            continue
        if fields:
            found.append(Record(at + 1, tuple(fields)))
        at += reader.line_num
    return found


def json_lines(data: bytes) -> int:
    """The number of rows of a file of JSON lines, malformed ones included.

    >>> json_lines(b'{"k": 1}\\n\\nx\\n')
    2
    """
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return sum(1 for line in lines if line.strip(b" \t\r"))
