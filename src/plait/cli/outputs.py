"""The files that `plait run` writes, and the preview in place of results that go nowhere else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

import pyarrow as pa

from plait.adapt.events import Event
from plait.cli.options import RunChoice
from plait.cli.show import aligned, cell, say
from plait.errors import PlaitError
from plait.figures import count
from plait.local.run import late_schema
from plait.local.sinks import EXTENSIONS, FileSink, Sink, late_paths
from plait.local.sources import Source
from plait.local.sources.bad import BAD_ROWS_SCHEMA, bad_rows_batch
from plait.machine.drafts import Draft, FileId, writing
from plait.node.reports.event_log import write_events
from plait.query.query import Query

PREVIEW_ROWS = 10


class Outputs:
    """Every file of a run. All are opened before the first row is read, and appear together.

    `inputs` are the files that the run reads: no output may replace one of them.
    """

    def __init__(
        self,
        files: ExitStack,
        query: Query,
        titles: dict[str, str],
        options: RunChoice,
        inputs: Collection[FileId] = (),
    ) -> None:
        late = late_paths(options.late, titles) if options.late is not None else {}
        self._titles = titles
        given = (options.out, options.bad_rows, options.events, *late.values())
        _check_distinct([path for path in given if path is not None])
        if options.late is not None and options.late.suffix.lower() not in EXTENSIONS:
            make_directory(options.late, files)

        def file(path: Path, schema: pa.Schema) -> FileSink:
            sink = FileSink(path, schema, overwrite=options.overwrite, inputs=inputs)
            self._files.append(files.enter_context(sink))
            return sink

        self._files: list[FileSink] = []
        self.results: Sink = (
            Preview(query.schema) if options.out is None else file(options.out, query.schema)
        )
        self._late = {s.name: file(late[s.name], late_schema(s)) for s in query.streams if late}
        self._bad = None if options.bad_rows is None else file(options.bad_rows, BAD_ROWS_SCHEMA)
        self._events = None
        if options.events is not None:
            self._events = Draft(options.events, overwrite=options.overwrite, inputs=inputs)
            files.callback(self._events.abandon)

    def write_late(self, stream: str, rows: pa.Table) -> None:
        """Write late rows of a stream."""
        for batch in rows.to_batches():
            self._late[stream].write(batch)

    def write_bad(self, sources: Mapping[str, Source]) -> None:
        """Write the malformed rows, those of a table that is two streams once."""
        if self._bad is not None:
            for name, source in distinct(sources).items():
                self._bad.write(bad_rows_batch(self._titles[name], source.bad.rows))

    def complete(self, events: Iterable[Event]) -> None:
        """Write all that is left before the first file appears."""
        for sink in self._files:
            sink.complete()
        if self._events is not None:
            with writing(self._events.path):
                write_events(events, self._events.temporary)
            self._events.publish()


def _check_distinct(paths: list[Path]) -> None:
    """Refuse two outputs of one name, also if it is written in two ways."""
    places = [path.parent.resolve() / path.name for path in paths]
    for path, place in zip(paths, places, strict=True):
        if places.count(place) > 1:
            raise PlaitError(f"two outputs are to be written to {path}", remedy="rename one")


def make_directory(path: Path, files: ExitStack) -> None:
    """Make a directory with its parents; those that stay empty are removed in the end."""
    with writing(path):
        missing = [p for p in (path, *path.parents) if not p.exists()]
        for folder in reversed(missing):
            files.callback(_remove_if_empty, folder)
        path.mkdir(parents=True, exist_ok=True)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def distinct(sources: Mapping[str, Source]) -> dict[str, Source]:
    """The sources, each under the first of its streams."""
    seen: dict[int, str] = {}
    for name, source in sources.items():
        seen.setdefault(id(source), name)
    return {name: sources[name] for name in seen.values()}


class Preview:
    """The first results, for a look."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._first: list[pa.RecordBatch] = []
        self._kept = 0
        self.rows = 0

    def write(self, rows: pa.RecordBatch) -> None:
        """Keep some of the rows, if there is room."""
        self.rows += rows.num_rows
        if self._kept < PREVIEW_ROWS:
            self._first.append(rows.slice(0, PREVIEW_ROWS - self._kept))
            self._kept += self._first[-1].num_rows

    def show(self) -> None:
        """Print the rows as a table."""
        table = pa.Table.from_batches(self._first, self._schema)
        show_table(table)
        if self.rows > self._kept:
            say(f"… and {count(self.rows - self._kept, 'more result')} (--out FILE writes all)")


def show_table(table: pa.Table) -> None:
    """Print rows under the names of their columns."""
    rows = [table.schema.names, *([cell(v) for v in row.values()] for row in table.to_pylist())]
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    left = [i for i, f in enumerate(table.schema) if not any(is_(f.type) for is_ in numeric)]
    header, *lines = aligned(rows, left=left)
    say(header, style="bold")
    for line in lines:
        say(line)
    if not lines:
        say("no results")
