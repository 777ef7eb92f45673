"""Settings that the meaning of SQL depends on beside its text: on Spark, those of the session.

On Spark, Spark's answer is the answer. A TIMESTAMP there is an instant that is read and written in
the session's time zone; a query that is not on Spark has no session, and its TIMESTAMP has no zone.
"""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass

from plait.errors import SourceError

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How to read SQL text.

    `zone` is the session's time zone, None where there is no session. `instants` says whether the
    type TIMESTAMP means instants (`spark.sql.timestampType`), and `ansi` whether a number that does
    not fit is an error, which is null here (`spark.sql.ansi.enabled`). `shortest` says whether
    floating-point numbers are written with the fewest digits that tell them apart, as by Java 19
    and later. `lengths` says whether casts to CHAR and VARCHAR heed their length
    (`spark.sql.preserveCharVarcharTypeInfo`).
    """

    zone: str | None = None
    instants: bool = True
    ansi: bool = True
    shortest: bool = True
    lengths: bool = False

    @property
    def timestamp_zone(self) -> str | None:
        """The zone of the type that SQL calls TIMESTAMP; None if it has none."""
        return self.zone if self.instants else None


PLAIN = Dialect()
"""SQL without a session."""


def zone_named(name: str) -> str:
    """Return a time zone by the name that Arrow knows.

    >>> zone_named("Europe/Berlin"), zone_named("GMT+2"), zone_named("Z"), zone_named("-03:30")
    ('Europe/Berlin', '+02:00', 'UTC', '-03:30')
    """
    if name in ("Z", "UTC", "GMT", "UT", "Etc/UTC"):
        return "UTC"
    if offset := _OFFSET.fullmatch(name):
        return f"{offset['sign']}{int(offset['hours']):02}:{offset['minutes'] or '00'}"
    try:
        return zoneinfo.ZoneInfo(name).key
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise SourceError(
            f"the session's time zone {name!r} is not known here",
            remedy="set spark.sql.session.timeZone to a name such as Europe/Berlin or +02:00",
        ) from None
