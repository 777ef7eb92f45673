"""The claims of docs/security.md: no code from data, no way out of a folder, private files."""

from __future__ import annotations

import ast
import pickle
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import plait
from plait.local.sinks import late_paths
from plait.machine.stores import RemoteStore
from plait.node.epochs import Epoch
from plait.plan.jtree import mjoin
from plait.spark.arena.engines import Arena, Places
from plait.spark.control.directory import Control
from plait.spark.io.delta_table import DeltaCommits
from plait.spark.io.write_delta import FileOutlet
from plait.testing.examples import clique
from plait_lab.laws.processors import Cluster

SOURCE = Path(plait.__file__).parent
ROOT = Path(__file__).parent.parent
MODULES = sorted(SOURCE.rglob("*.py"))

# -- no code from data

FORBIDDEN = {
    # Modules whose readers may call what the data names.
    "pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "copyreg",
    "jsonpickle", "yaml",
    # Text, or a file, as code.
    "code", "codeop", "runpy", "imp", "builtins", "eval()", "exec()", "compile()", "__import__()",
    # The same by way of a library.
    ".read_pickle", ".to_pickle", ".find_class", ".exec_module", ".load_module", "allow_pickle=",
    # A text as a command.
    "os.system", "os.popen", "os.execv", "os.execve", "os.execvp", "os.posix_spawn", "shell=",
    # What only pickle calls.
    "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__",
}  # fmt: skip
"""Modules by name, builtins as calls, methods and keywords, functions of modules."""

_BUILTINS = {"eval", "exec", "compile", "__import__"}

STARTS_PROGRAMS = {
    "spark/environment/java.py": "asks an installed Java for its version",
}
IMPORTS_BY_NAME = {
    "exports.py": "names in tables of packages",
    "local/run.py": "pandas and polars, which results turn into",
}


def found_in(tree: ast.Module) -> Iterator[str]:
    """What a module imports and uses, in the words of `FORBIDDEN`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module.partition(".")[0]
            for alias in node.names:
                yield from (f"{node.module}.{alias.name}", f".{alias.name}")
        elif isinstance(node, ast.Name) and node.id in _BUILTINS:
            yield f"{node.id}()"
        elif isinstance(node, ast.Attribute):
            yield f".{node.attr}"
            if isinstance(node.value, ast.Name):
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.keyword):
            yield f"{node.arg}="
        elif isinstance(node, ast.FunctionDef):
            yield node.name


def named(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@pytest.mark.slow
@pytest.mark.parametrize("path", MODULES, ids=named)
def test_no_module_makes_code_of_data(path: Path) -> None:
    found = set(found_in(ast.parse(path.read_text(encoding="utf-8"))))
    assert found & FORBIDDEN == set()
    if named(path) not in STARTS_PROGRAMS:
        assert "subprocess" not in found, "say in STARTS_PROGRAMS what for"
    if named(path) not in IMPORTS_BY_NAME:
        assert ".import_module" not in found, "say in IMPORTS_BY_NAME which names"


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "import cloudpickle as safe",
        "eval('1')",
        "f = exec",
        "compile('1', '', 'eval')",
        "import os\nos.system('true')",
        "from os import popen",
        "import builtins\nbuiltins.eval('1')",
        "import pandas as pd\npd.read_pickle('x')",
        "import numpy as np\nnp.load('x', allow_pickle=True)",
        "class A:\n    def __setstate__(self, state): ...",
        "import subprocess\nsubprocess.run('true', shell=True)",
    ],
)
def test_the_scan_sees_what_it_looks_for(code: str) -> None:
    assert set(found_in(ast.parse(code))) & FORBIDDEN


def test_the_lists_of_exceptions_are_not_longer_than_needed() -> None:
    for name in {*STARTS_PROGRAMS, *IMPORTS_BY_NAME}:
        found = set(found_in(ast.parse((SOURCE / name).read_text(encoding="utf-8"))))
        wanted = "subprocess" if name in STARTS_PROGRAMS else ".import_module"
        assert wanted in found, name


_HOSTILE = r"""
import json, pickle, sys
from pathlib import Path

import pyarrow as pa

from plait.node.reports.event_log import read_events
from plait.node.epochs import Epoch
from plait.node.durable.store import Live
from plait.node.reports.report import Report
from plait.engine.driver import Engine
from plait.engine.windows import Windows
from plait.errors import PlaitError
from plait.plan import serde
from plait.testing.examples import clique
from plait.plan.jtree import mjoin, parse_shape
from plait.query.serde import query_from_dict
from plait.query.sql.conditions import parse_condition
from plait.query.sql.outputs import parse_select
from plait.spark.arena.engines import Arena, Places

folder = Path(sys.argv[1])
query = clique(3)
streams = query.streams


class Harm:
    def __reduce__(self):
        return Path.touch, (folder / "harm",)


def arena(damage):
    places = Places(folder / "memory", folder / "disk", smallest=1)
    one, two = Arena("run", places), Arena("run", places)
    windows = Windows(query, {}, memory=one.memory(0))
    one.put(0, Live("token", Engine(query, mjoin(query), windows=windows)))
    (manifest,) = places.memory.glob("run/0-*/engine-*")
    if damage is not None:
        manifest.write_bytes(damage)
    return two.take(0, "token", query)


def events(text):
    (folder / "log.jsonl").write_text(text)
    return read_events(folder / "log.jsonl")


CODE = "__import__('pathlib').Path(%r).touch()" % str(folder / "harm")
readers = {
    "condition": (lambda t: parse_condition(t, streams), "a.k = b.k"),
    "select": (lambda t: parse_select([t], streams), "a.k AS x"),
    "shape": (lambda t: parse_shape(query, t), "((a b) c)"),
    "plan": (lambda t: serde.loads(t, query), serde.dumps(mjoin(query))),
    "query": (lambda t: query_from_dict(json.loads(t)), "{}"),
    "epoch": (lambda t: Epoch.from_json(t, query), Epoch(1, mjoin(query)).to_json()),
    "report": (Report.from_json, Report(0, 1).to_json()),
    "events": (events, ""),
}
HOSTILE = [
    CODE,
    f"a.k = {CODE}",
    f"a.k = '${{{CODE}}}'",
    f"java_method('java.lang.Runtime', 'exec', 'touch {folder}/harm') = a.k",
    f"reflect('java.lang.System', 'exit', 1) = a.k",
    "{{config.__class__.__init__.__globals__}}",
    json.dumps({"py/reduce": [{"py/function": "os.system"}, ["true"]]}),
    json.dumps({"__reduce__": CODE, "version": 1, "plan": {"kind": CODE}}),
    json.dumps({"number": CODE, "strategy": CODE, "plan": {"$": CODE}}),
    "!!python/object/apply:os.system ['true']",
    pickle.dumps(Harm(), 0).decode("latin-1"),
]


def read(reader, text):
    try:
        reader(text)
    except (PlaitError, ValueError, KeyError, TypeError):
        pass


for reader, benign in readers.values():  # imports, and everything that is made at the first use
    read(reader, benign)
    for text in HOSTILE:
        read(reader, text)
assert arena(None) is not None
assert not (folder / "harm").exists(), "something ran"

ARMED = False
NEVER = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "pickle.",
         "marshal.", "exec", "compile", "ctypes.dlopen", "socket.connect", "webbrowser.")


def watch(event, arguments):
    if ARMED and event.startswith(NEVER):
        sys.stderr.write(f"{event} {arguments}\n")
        raise SystemExit(f"{event} while reading data")


dumped = pickle.dumps(Harm())
sys.addaudithook(watch)
ARMED = True
for reader, benign in readers.values():
    for text in [benign, *HOSTILE]:
        read(reader, text)
assert arena(dumped) is None
assert arena(b"plait-engine 1\n" + dumped) is None
ARMED = False
assert not (folder / "harm").exists(), "something ran"
print("calm")
"""


@pytest.mark.slow
def test_nothing_in_data_is_executed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _HOSTILE, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "calm", done.stderr[-2000:]


# -- no way out of a folder


@pytest.mark.parametrize("name", ["..", "../x", "/etc/x", "a/../../x", ".", "a\0b", "", "é" * 300])
def test_names_of_streams_and_joins_do_not_lead_out_of_their_folder(
    tmp_path: Path, name: str
) -> None:
    from plait.spark.control.directory import Control

    folder = tmp_path / "late"
    for given in (folder, folder / "late.csv"):
        (path,) = late_paths(given, {"s": name}).values()
        assert path.parent.resolve() == folder.resolve()
        assert "\0" not in path.name and len(path.name.encode()) < 256
    control = Control.of(str(tmp_path), name, "run", "yarn")
    assert Path(control.folder).resolve().parent == (tmp_path / "plait").resolve()


# -- what is created in places that others can write to


def test_everything_in_shared_places_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    from plait.spark.control.directory import Control

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = os.umask(0)
    try:
        host = Places.of_host(limit=0)
        places = Places(tmp_path / host.memory.name, host.disk, limit=0, smallest=1)
        query = clique(3)
        cluster = Cluster(query, mjoin(query), 1, [Arena("run", places)])
        cluster.run({s.name: s.schema.empty_table() for s in query.streams})
        control = Control.of(None, None, "run", "local[2]")
        control.epochs.add(mjoin(query), "moving-state")
        assert isinstance(control.newest_epoch(query)[0], Epoch)
    finally:
        os.umask(before)
    created = list(tmp_path.iterdir())
    assert len(created) == 3, "shared memory, disk, control"
    for path in created:
        assert path.is_dir() and stat.S_IMODE(path.stat().st_mode) == 0o700, path
        assert path.name.startswith("plait-")


# -- the pages


def test_credentials_stay_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What travels to executors, or is written, is made from values that have none."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "do-not-tell")
    schema = pa.schema([("k", pa.int64())])
    travelling = [
        RemoteStore("s3://bucket/check"),
        Control.of("s3a://bucket/check", None, "run", "yarn"),
        DeltaCommits("s3://bucket/table", schema),
        FileOutlet(clique(2), "s3://bucket/table", None, False),
    ]
    for value in travelling:
        assert b"do-not-tell" not in pickle.dumps(value), value


def test_the_pages_are_there_and_name_what_exists() -> None:
    policy = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    page = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    assert "docs/security.md" in policy and "private vulnerability reporting" in policy
    assert "@" not in policy, "no addresses"
    for name in ("tests/test_security.py", "tests/laws/test_law5_arena.py"):
        assert name in page + policy and (ROOT / name).exists()
    for name in ("machine/private.py",):
        assert name in page and (SOURCE / name).exists()
    for kind in ("checkpoint", "control directory", "arena", "inputs", "SQL text", "plan text",
                 "event logs"):  # fmt: skip
        assert kind in page, kind
