"""The log of batches: read while it grows, cut off, written anew."""

from __future__ import annotations

from pathlib import Path

from plait.node.reports.history import HistoryEntry
from plait.node.reports.history_log import HistoryReader, HistoryWriter


def test_a_reader_sees_each_line_once_while_the_log_grows_and_is_thinned(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    reader, writer = HistoryReader(path), HistoryWriter(path, most=10)
    assert reader.read() == [] and writer.last == -1
    for number in range(50):
        writer.add([HistoryEntry(number, number, results=1)])
        lines = reader.read()
        assert len(lines) <= 11 and lines[-1].last == number
        assert sum(line.results for line in lines) == number + 1
        covered = [n for line in lines for n in range(line.first, line.last + 1)]
        assert covered == list(range(number + 1))
    assert HistoryWriter(path).last == 49


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    writer = HistoryWriter(path)
    writer.add([HistoryEntry(1, 1), HistoryEntry(2, 2)])
    for rest in (b'{"first":3,"la', b"\xff\xfe\n", b"[]\n", b'{"first":9}\n'):
        before = path.read_bytes()
        path.write_bytes(before + rest)
        assert [p.last for p in HistoryReader(path).read()] == [1, 2]
        HistoryWriter(path).add([HistoryEntry(3, 3)])
        assert [p.last for p in HistoryReader(path).read()] == [1, 2, 3]
        path.write_bytes(before)


def test_the_end_can_be_read_first(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    assert HistoryReader(path).tail(100) is None, "there is none"
    HistoryWriter(path).add([HistoryEntry(n, n) for n in range(100)])
    few = HistoryReader(path).tail(300)
    assert few is not None and 2 < len(few) < 20 and few[-1].last == 99
    assert HistoryReader(path).tail(1 << 20) is None, "the whole log is as short"
