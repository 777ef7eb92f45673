"""The deployment guide: every command in it that can run on one machine is run, in its order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait.spark.environment.java import provide_java
from plait_lab.torture.spark.campaign import sink_files

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
APPLICATION = re.findall(r'```python title="app.py"\n(.*?)```', PAGE, re.DOTALL)[0]
_INSTALL = "'plait[worker,delta]' venv-pack"
_SECOND = 1_000_000


def test_what_is_run_is_marked_and_what_is_not_says_why() -> None:
    assert PAGE.count("(*run*):\n\n```sh\n") == len(COMMANDS) == 5
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE):
        if 'title="not run"' in section:
            assert "Not run" in section, section.splitlines()[0]


@pytest.mark.integration
@pytest.mark.xdist_group("spark")
def test_the_commands_run(tmp_path: Path) -> None:
    provide_java()
    (tmp_path / "app.py").write_text(APPLICATION)
    wanted = _feeds(tmp_path / "data")
    for command in COMMANDS:
        if "venv_pack" in command and find_spec("venv_pack") is None:
            continue  # ./dev setup --integration installs it
        _run(_without_network(command, tmp_path), tmp_path)
    found = (
        duckdb.connect()
        .execute(f"SELECT count(*), sum(price * quoted) FROM read_parquet({_names(tmp_path)})")
        .fetchone()
    )
    assert found == wanted and wanted[0] > 100
    assert "trades" in (tmp_path / "report.html").read_text(encoding="utf-8")
    if find_spec("venv_pack") is not None:
        with tarfile.open(tmp_path / "environment.tar.gz") as packed:
            names = packed.getnames()
        assert "bin/python" in names and any(n.endswith("plait/api/join.py") for n in names)


def _feeds(home: Path) -> tuple[int, float]:
    """Two streams, and the number of their results with a sum over them, by DuckDB."""
    for number, name in enumerate(("trades", "quotes")):
        (home / name).mkdir(parents=True)
        times = pa.array([i * _SECOND for i in range(100)], pa.timestamp("us", "UTC"))
        symbols = [f"s{(i * (number + 3)) % 5}" for i in range(100)]
        prices = [float(i + number) for i in range(100)]
        table = pa.table({"sym": symbols, "price": prices, "ts": times})
        pq.write_table(table, home / name / "0.parquet")
    found = (
        duckdb.connect()
        .execute(
            f"""SELECT count(*), sum(t.price * q.price)
        FROM read_parquet('{home}/trades/*') t JOIN read_parquet('{home}/quotes/*') q
          ON t.sym = q.sym AND abs(epoch_us(t.ts) - epoch_us(q.ts)) <= {10 * _SECOND}"""
        )
        .fetchone()
    )
    assert found is not None
    return int(found[0]), float(found[1])


def _names(home: Path) -> list[str]:
    return [str(path) for path in sink_files(home / "data" / "results")]


def _without_network(command: str, home: Path) -> str:
    """The same command; Plait is installed from this tree, and what it needs is there already."""
    if _INSTALL not in command:
        return command
    tree = home / "tree"
    for name in _sources():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes((ROOT / name).read_bytes())
    made = f"-m pip wheel -q --no-deps --no-index --no-build-isolation -w {home} {tree}"
    _run(f"{sys.executable} {made}", home)
    (wheel,) = home.glob("plait-*.whl")
    return command.replace(_INSTALL, f"-q --no-deps --no-index {wheel}")


def _sources() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "src", "pyproject.toml", "README.md", "LICENSE"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def _run(command: str, home: Path) -> None:
    """Run it in a folder, with the packages of this environment, whose kernels are compiled."""
    packages = [str(Path(plait.__file__).parents[1]), sysconfig.get_path("purelib")]
    environment = {n: v for n, v in os.environ.items() if n != "SPARK_REMOTE"} | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(packages),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
