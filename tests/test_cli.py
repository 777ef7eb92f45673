"""The command line as its users meet it: what it prints, writes and answers with."""

from __future__ import annotations

import datetime as dt
import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from plait import __version__
from plait.cli import main
from plait.local.run import Execution

QUERY = """
SELECT t.sym, t.price, q.bid
FROM trades t JOIN quotes q ON t.sym = q.sym AND q.ts BETWEEN t.ts - INTERVAL 1 SECOND AND t.ts
"""
START = dt.datetime(2024, 1, 1)


def moments(seconds: list[float | None]) -> pa.Array:
    stamps = [None if s is None else START + dt.timedelta(seconds=s) for s in seconds]
    return pa.array(stamps, pa.timestamp("us"))


class Cli:
    """Runs commands in a directory of its own, with the files of a small market."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._capsys = capsys
        n = 20
        trades = pa.table(
            {
                "ts": moments([float(i) for i in range(n)]),
                "sym": [f"S{i % 3}" for i in range(n)],
                "price": [100.0 + i for i in range(n)],
            }
        )
        quotes = pa.table(
            {
                "ts": moments([i - 0.5 for i in range(n)]),
                "sym": [f"S{i % 3}" for i in range(n)],
                "bid": [99.5 + i for i in range(n)],
            }
        )
        pq.write_table(trades, root / "trades.parquet")
        pcsv.write_csv(quotes, root / "quotes.csv")
        (root / "query.sql").write_text(QUERY)

    def __call__(self, *arguments: str) -> int:
        self._capsys.readouterr()
        self.code = main(list(arguments))
        self.out, self.err = self._capsys.readouterr()
        return self.code

    def run(self, *arguments: str) -> int:
        return self("run", "query.sql", *STREAMS, *arguments)

    def fails(self, *arguments: str) -> str:
        """The two lines of an error, after checking that it is nothing but that."""
        assert self(*arguments) == 2, self.out
        lines = self.err.splitlines()
        assert lines[0].startswith("error: ")
        assert len(lines) <= 2
        assert all(line.startswith("  ") for line in lines[1:])
        assert "Traceback" not in self.err
        return self.err


STREAMS = ("-s", "trades=trades.parquet", "-s", "quotes=quotes.csv")


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLAIT_TRACEBACK", raising=False)
    return Cli(tmp_path, capsys)


# --- run ---------------------------------------------------------------------------------------


def test_run_shows_the_first_results_and_a_summary(cli: Cli) -> None:
    assert cli.run() == 0
    lines = cli.out.splitlines()
    assert lines[0].split() == ["sym", "price", "bid"]
    assert lines[11] == "… and 10 more results (--out FILE writes all)"
    assert "trades    20     0        0         0         0          0" in lines
    assert "20 results" in lines
    assert "rows/s; state at most" in lines[-1]
    assert "\x1b" not in cli.out, "plain where there is no terminal"
    assert cli.err == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.jsonl"])
def test_run_writes_what_its_extension_says(cli: Cli, name: str) -> None:
    assert cli.run("--out", name) == 0
    assert f"20 results in {name}" in cli.out
    path = cli.root / name
    if name == "out.parquet":
        assert sorted(pq.read_table(path).column("bid").to_pylist()) == [
            99.5 + i for i in range(20)
        ]
    else:
        assert len(path.read_text().splitlines()) == 20 + (name == "out.csv")


def test_run_quietly(cli: Cli) -> None:
    assert cli.run("--out", "out.csv", "--quiet") == 0
    assert cli.out + cli.err == ""


def test_run_takes_the_query_in_three_ways(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("run", "-q", QUERY, *STREAMS, "--out", "one.csv") == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO(QUERY))
    assert cli("run", "-", *STREAMS, "--out", "two.csv") == 0
    one, two = (sorted((cli.root / f"{n}.csv").read_text().splitlines()) for n in ("one", "two"))
    assert one == two and len(one) == 21
    assert "no query is given" in cli.fails("run", *STREAMS)
    assert "both given" in cli.fails("run", "query.sql", "-q", QUERY, *STREAMS)
    assert "nowhere.sql cannot be read" in cli.fails("run", "nowhere.sql", *STREAMS)


@pytest.mark.slow
def test_run_in_file_order_keeps_late_rows_for_who_asks(cli: Cli) -> None:
    times = [0.0, 5.0, 1.0, 6.0, 2.0, 7.0]
    rows = pa.table({"ts": moments(list(times)), "sym": ["S0"] * 6, "price": [1.0] * 6})
    pq.write_table(rows, cli.root / "trades.parquet")
    assert cli.run("--order", "file", "--batch-rows", "1") == 0
    assert "2 late rows are not in the results: --late PATH keeps them" in cli.out
    assert cli.run("--order", "file", "--batch-rows", "1", "--late", "late") == 0
    assert pq.read_table("late/trades.parquet").column("ts").to_pylist() == [
        START + dt.timedelta(seconds=s) for s in (1, 2)
    ]
    assert pq.read_table("late/quotes.parquet").num_rows == 0
    assert cli.run("--order", "file", "--batch-rows", "1", "--late", "late.csv") == 0
    assert len(Path("late-trades.csv").read_text().splitlines()) == 3
    assert cli.run("--order", "file", "--batch-rows", "1", "-w", "1 s", "-w", "trades=9 s") == 0
    assert "late rows" not in cli.out
    assert cli.run() == 0, "sorted by event time, no row is late"
    assert "late rows" not in cli.out


@pytest.mark.slow
def test_run_sets_malformed_rows_aside(cli: Cli) -> None:
    text = (cli.root / "quotes.csv").read_text()
    lines = text.splitlines()
    lines[3] = '2024-01-01 00:00:02,"S2",many'
    lines.insert(8, '"S1",3')
    (cli.root / "quotes.csv").write_text("\n".join(lines) + "\n")
    assert cli.run("--bad-rows", "bad.jsonl") == 0
    assert "quotes    19     0        0         0         0          2" in cli.out
    found = [json.loads(line) for line in Path("bad.jsonl").read_text().splitlines()]
    assert [(row["stream"], row["line"], row["reason"]) for row in found] == [
        ("quotes", 4, "bid is 'many', not double"),
        ("quotes", 9, "2 fields instead of 3"),
    ]
    assert found[1]["text"] == '"S1",3'
    assert cli.run() == 0
    assert "2 malformed rows were set aside (--bad-rows FILE writes them):" in cli.out
    assert "  quotes.csv, line 4: bid is 'many', not double" in cli.out
    message = cli.fails("run", "query.sql", *STREAMS, "--max-bad-rows", "1", "-o", "out.csv")
    assert "quotes.csv has more than 1 malformed row" in message
    assert "allow more with --max-bad-rows" in message
    assert not Path("out.csv").exists()
    assert not list(cli.root.glob(".*")), "no half files"


def test_run_sets_malformed_json_aside(cli: Cli) -> None:
    lines = [
        f'{{"ts": "2024-01-01T00:00:{i:02}", "sym": "S{i % 3}", "bid": 9.5}}' for i in range(9)
    ]
    lines[4] = '{"ts": "2024-01-01T00:00:04", "sym": "S1", "bid": "x"}'
    lines[6] = "{"
    (cli.root / "quotes.jsonl").write_text("\n".join(lines))
    assert cli("run", "query.sql", "-s", "trades=trades.parquet", "-s", "quotes=quotes.jsonl") == 0
    assert 'quotes.jsonl, line 5: bid is "x", not double' in cli.out
    assert "quotes.jsonl, line 7: no JSON: Expecting property name" in cli.out


def test_run_counts_rows_without_time_or_key(cli: Cli) -> None:
    rows = pa.table(
        {"ts": moments([None, 1.0, 2.0]), "sym": ["S1", None, "S2"], "price": [1.0] * 3}
    )
    pq.write_table(rows, cli.root / "trades.parquet")
    assert cli.run() == 0
    assert "trades     3     0        1         1         0          0" in cli.out


def test_run_with_counted_times_and_given_types(cli: Cli) -> None:
    rows = "at,sym,price\n" + "".join(f"{1704067200000 + 1000 * i},{i},1\n" for i in range(5))
    (cli.root / "trades.csv").write_text(rows)
    quotes = "at,sym,bid\n" + "".join(f"{1704067200 + i},{i},1\n" for i in range(5))
    (cli.root / "counted.csv").write_text(quotes)
    query = "SELECT t.sym, price FROM trades t JOIN quotes q ON t.sym = q.sym WITHIN 1 SECOND"
    streams = ("-s", "trades=trades.csv", "-s", "quotes=counted.csv")
    units = ("-t", "trades=at:ms", "-t", "quotes=at:s")
    assert cli("run", "-q", query, *streams, *units, "--type", "trades.price=double") == 0
    assert "5 results" in cli.out
    message = cli.fails("run", "-q", query, *streams, "-t", "at")
    assert "trades.at is of type int64, not a timestamp" in message
    assert "write --time trades=at:ms" in message
    assert "after the year 9999" in cli.fails("run", "-q", query, *streams, "-t", "at:s")


@pytest.mark.slow
def test_run_with_a_plan(cli: Cli) -> None:
    assert cli("explain", "query.sql", *STREAMS, "--json", "-") == 0
    Path("plan.json").write_text(cli.out)
    assert cli.run("--plan-file", "plan.json", "--explain") == 0
    assert "plan (t q)" in cli.out
    assert cli.run("--plan", "(q t)", "--explain") == 0
    assert "plan (q t)" in cli.out
    assert cli.run("--plan", "teddies", "--explain") == 0
    assert "plan teddies (ordered)" in cli.out
    assert "20 results" in cli.out
    assert "lacks the stream 'q'" in cli.fails("run", "query.sql", *STREAMS, "--plan", "t")


def test_run_a_table_with_itself(cli: Cli) -> None:
    text = "SELECT a.price, b.price AS next FROM trades a JOIN trades b ON a.sym = b.sym WITHIN 3 s"
    assert cli("run", "-q", text, "-s", "trades=trades.parquet") == 0
    assert "\na         20" in cli.out
    assert "\nb         20" in cli.out


def test_an_interrupted_run_is_clean(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Execution, watch: Callable[[], None]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Execution, "results", interrupted)
    assert cli.run("--out", "out.parquet") == 130
    assert cli.err == "interrupted\n"
    assert not Path("out.parquet").exists()
    assert not list(cli.root.glob(".*"))


WAITING = """
import sys, time
from plait.cli import main
from plait.local.run import Execution

def results(self, watch):
    print("ready", flush=True)
    while True:
        time.sleep(0.01)
    yield

Execution.results = results
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_nothing_behind(cli: Cli, number: signal.Signals) -> None:
    before = sorted(p.name for p in cli.root.iterdir())
    outputs = ("-o", "out.csv", "--late", "late/here", "--events", "e.jsonl", "--bad-rows", "b.csv")
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, "run", "query.sql", *STREAMS, *outputs],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert len(list(cli.root.glob(".*"))) == 3
    process.send_signal(number)
    _, errors = process.communicate(timeout=50)
    assert process.returncode == 128 + number
    word = "interrupted" if number == signal.SIGINT else f"stopped by {number.name}"
    assert errors.split("\n")[-2:] == [word, ""]
    assert "Traceback" not in errors
    assert sorted(p.name for p in cli.root.iterdir()) == before


@pytest.mark.slow
def test_an_output_never_replaces_an_input(cli: Cli) -> None:
    (cli.root / "soft.csv").symlink_to("quotes.csv")
    (cli.root / "hard.csv").hardlink_to(cli.root / "quotes.csv")
    (cli.root / "soft.parquet").symlink_to(cli.root / "trades.parquet")
    (cli.root / "late").mkdir()
    (cli.root / "late" / "trades.parquet").hardlink_to(cli.root / "trades.parquet")
    kept = {p: p.read_bytes() for p in cli.root.iterdir() if p.is_file()}
    options = [
        ("-o", "quotes.csv"), ("-o", "./late/../quotes.csv"), ("-o", str(cli.root / "quotes.csv")),
        ("-o", "soft.csv"), ("-o", "hard.csv"), ("-o", "soft.parquet"), ("--late", "late"),
        ("--bad-rows", "hard.csv"), ("--events", "quotes.csv"), ("--events", "query.sql"),
    ]  # fmt: skip
    for given in options:
        message = cli.fails("run", "query.sql", *STREAMS, *given, "--overwrite")
        assert "is one of the inputs" in message, given
    pattern = ("-s", "trades=tr*.parquet", "-s", "quotes=quotes.csv")
    message = cli.fails("run", "query.sql", *pattern, "-o", "trades.parquet", "--overwrite")
    assert "is one of the inputs" in message
    assert {p: p.read_bytes() for p in cli.root.iterdir() if p.is_file()} == kept
    assert not list(cli.root.glob("**/.*"))


def test_all_outputs_appear_or_none(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(events: object, path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("plait.cli.outputs.write_events", full)
    files = ("-o", "out.csv", "--late", "late", "--events", "events.jsonl")
    assert "events.jsonl cannot be written: No space" in cli.fails(
        "run", "query.sql", *STREAMS, *files
    )
    assert sorted(p.name for p in cli.root.iterdir()) == [
        "query.sql",
        "quotes.csv",
        "trades.parquet",
    ]


@pytest.mark.slow
def test_old_events_stay_if_the_run_fails(cli: Cli) -> None:
    events = cli.root / "events.jsonl"
    events.write_text("old")
    given = ("run", "query.sql", *STREAMS, "--events", "events.jsonl")
    assert "the output events.jsonl exists" in cli.fails(*given)
    cli.fails(*given, "--overwrite", "--batch-seconds", "nan")
    assert events.read_text() == "old"
    assert cli(*given, "--overwrite") == 0
    assert "old" not in events.read_text()


@pytest.mark.parametrize("name", ["../x", "/etc/x", "..", "a/b", "x" * 300, "%2E.", "ü ?*"])
def test_late_rows_stay_in_their_directory(cli: Cli, name: str) -> None:
    quoted = f'SELECT t.price FROM trades t JOIN "{name}" q ON t.sym = q.sym WITHIN 1 SECOND'
    given = ("-s", "trades=trades.parquet", "-s", f"{name}=quotes.csv")
    assert cli("run", "-q", quoted, *given, "--late", "in/late") == 0
    made = sorted(p.relative_to(cli.root).parts for p in cli.root.glob("**/*.parquet"))
    assert [parts[:-1] for parts in made] == [("in", "late"), ("in", "late"), ()]


def test_an_alias_may_be_the_name_of_another_table(cli: Cli) -> None:
    text = (
        "SELECT b.price FROM trades quotes JOIN trades b ON quotes.sym = b.sym "
        "JOIN quotes q ON b.sym = q.sym WITHIN 1 SECOND"
    )
    assert cli("run", "-q", text, *STREAMS, "--late", "late") == 0
    assert sorted(p.name for p in Path("late").iterdir()) == [
        "b.parquet", "q.parquet", "quotes.parquet"
    ]  # fmt: skip


# --- errors ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["-s", "trades=trades.parquet"],
         ["line 3, column 20: there is no table 'quotes'", "needs its rows: --stream NAME=PATH"]),
        ([*STREAMS, "-s", "news=quotes.csv"], ["--stream news: the query has no table 'news'"]),
        ([*STREAMS, "-s", "quotes=trades.parquet"],
         ["--stream is given twice for 'quotes': quotes.csv and trades.parquet"]),
        (["-s", "trades"], ["--stream 'trades' is not NAME=VALUE"]),
        ([], ["no stream is given", "--stream trades=trades.parquet"]),
        (["-s", "trades=trades.csv"],
         ["trades.csv does not exist", "known: out.d, quotes.csv, trades.parquet"]),
        ([*STREAMS, "-t", "quotes=when"],
         ["'quotes' has no column 'when'", "for example --time quotes=ts"]),
        ([*STREAMS, "-t", "quotes=bid"], ["quotes.bid is of type double, not a timestamp"]),
        ([*STREAMS, "-t", "news=ts"], ["--time news: there is no --stream 'news'"]),
        ([*STREAMS, "-t", "ts", "-t", "at"], ["--time is given twice for all streams: ts and at"]),
        ([*STREAMS, "-w", "soon"], ["'soon' is not a length of time"]),
        ([*STREAMS, "--type", "quotes.bid=dubble"], ["no type 'dubble'", "did you mean 'double'"]),
        ([*STREAMS, "--type", "quotes.ask=int64"], ["quotes.csv has no column 'ask'"]),
        ([*STREAMS, "--out", "out.d/mine.csv"],
         ["the output out.d/mine.csv exists", "or replace it: --overwrite"]),
        ([*STREAMS, "--out", "quotes.csv"], ["the output quotes.csv is one of the inputs"]),
        ([*STREAMS, "--batch-seconds", "nan"], ["a batch of nan seconds", "above 0"]),
        ([*STREAMS, "--batch-seconds", "inf"], ["a batch of inf seconds", "above 0"]),
        ([*STREAMS, "--batch-seconds", "-inf"], ["a batch of -inf seconds", "above 0"]),
        ([*STREAMS, "--batch-seconds", "0"], ["a batch of 0 seconds", "above 0"]),
        ([*STREAMS, "--batch-seconds", "-1"], ["a batch of -1 seconds", "above 0"]),
        ([*STREAMS, "--out", "out/x.csv"], ["there is no directory out", "mkdir -p out"]),
        ([*STREAMS, "--out", "x.csv", "--bad-rows", "x.csv"], ["two outputs", "x.csv"]),
        ([*STREAMS, "--order", "random"], ["'random' is not one of 'event-time', 'file'"]),
        ([*STREAMS, "--batch-rows", "0"], ["--batch-rows"]),
        ([*STREAMS, "--frob"], ["No such option: --frob", "plait run --help"]),
    ],
    ids=lambda value: " ".join(value[-2:]) if value and value[0].startswith("-") else "",
)  # fmt: skip
def test_errors_name_the_culprit_and_the_remedy(
    cli: Cli, arguments: list[str], parts: list[str]
) -> None:
    (cli.root / "out.d").mkdir()
    (cli.root / "out.d" / "mine.csv").touch()
    message = cli.fails("run", "query.sql", *arguments)
    for part in parts:
        assert part in message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM trades t LEFT JOIN quotes q USING (sym)", "LEFT JOIN is not supported"),
        ("SELECT t.sym FROM trades t JOIN quotes q ON t.sym = q.sym ORDER BY 1",
         "line 1, column 59: ORDER BY is not supported"),
        ("SELECT t.sym FROM trades t JOIN quotes q ON t.sym = q.sym",
         "end the query with WITHIN 10 SECONDS"),
        ("SELECT t.size FROM trades t JOIN quotes q USING (sym) WITHIN 1 s", "no column 'size'"),
        ("DELETE FROM trades", "DELETE is not supported"),
        ("SELECT (", "syntax error"),
        ("", "the query is empty"),
    ],
)  # fmt: skip
def test_sql_outside_the_supported_part(cli: Cli, query: str, message: str) -> None:
    assert message in cli.fails("run", "-q", query, *STREAMS)


def test_unreadable_files(cli: Cli) -> None:
    (cli.root / "trades.parquet").write_text("no parquet")
    assert "trades.parquet cannot be read as Parquet" in cli.fails("run", "query.sql", *STREAMS)
    (cli.root / "empty.csv").touch()
    empty = ("-s", "trades=empty.csv", "-s", "quotes=quotes.csv")
    assert "empty.csv is empty" in cli.fails("run", "query.sql", *empty)


def test_a_traceback_for_who_asks(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_TRACEBACK", "1")
    with pytest.raises(Exception, match="no stream is given"):
        cli("run", "query.sql")


# --- the other commands ------------------------------------------------------------------------


def test_explain(cli: Cli) -> None:
    assert cli("explain", "query.sql", *STREAMS, "-w", "2 seconds") == 0
    assert "watermark delay 2 s" in cli.out
    assert "t → q (sym)" in cli.out
    assert cli("explain", "query.sql", *STREAMS, "--json", "-") == 0
    explained = json.loads(cli.out)
    assert explained["query"]["streams"][1]["columns"]["bid"] == "double"
    assert explained["query"]["bounds_us"] == [[0, 0], [1_000_000, 0]]
    assert explained["plan"]["plan"]["kind"] == "join"


@pytest.mark.slow
def test_explain_writes_the_plan_to_a_file_that_run_reads(cli: Cli) -> None:
    assert cli("explain", "query.sql", *STREAMS, "--json", "plans/plan.json") == 0
    assert cli.out.startswith("written: plans/plan.json\n") and "event time ts" in cli.out
    assert "plan" in json.loads(Path("plans/plan.json").read_text())
    assert cli.run("--plan-file", "plans/plan.json", "-o", "out.csv") == 0


def test_generate(cli: Cli) -> None:
    assert cli("generate", "--example") == 0
    Path("spec.json").write_text(cli.out)
    assert cli("generate", "spec.json", "--seconds", "0.5", "--out", "a", "--format", "csv") == 0
    assert cli("generate", "--preset", "market", "--seconds", "0.5", "--out", "b") == 0
    assert sorted(p.name for p in Path("a").iterdir()) == [
        f"{name}.csv" for name in ("news", "orders", "quotes", "trades")
    ]
    rows = pq.read_table("b/trades.parquet").num_rows
    assert len(Path("a/trades.csv").read_text().splitlines()) == rows + 1
    exists = cli.fails("generate", "spec.json", "--out", "a", "--format", "csv")
    assert "a/trades.csv exists" in exists
    assert "no description is given" in cli.fails("generate", "--out", "a")
    assert "name a directory: --out DIR" in cli.fails("generate", "spec.json")
    assert "no preset 'zoo'" in cli.fails("generate", "--preset", "zoo", "--out", "c")


def test_version_help_and_unknown_commands(cli: Cli) -> None:
    assert cli("--version") == 0
    assert cli.out == f"plait {__version__}\n"
    assert cli() == 0
    assert "plait [OPTIONS] COMMAND" in cli.out
    assert "there is no command plait frobnicate" in cli.fails("frobnicate")


def plait(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "plait", *arguments]


@pytest.mark.slow
def test_help_is_quick_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; from plait.cli import main; main(['run', '--help']); "
        "print(sorted({'numba', 'numpy', 'pyarrow', 'sqlglot'} & set(sys.modules)))"
    )
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
    assert "--max-bad-rows" in done.stdout
    assert time.perf_counter() - begin < 5, "0.3 s on an idle machine"


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(cli: Cli) -> None:
    process = subprocess.Popen(
        plait("explain", "query.sql", *STREAMS), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() in (0, 1)
