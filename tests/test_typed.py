"""What people type: a common column, frames of other libraries, results in their favourite form."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import plait
from plait.errors import MissingRequirement, QueryError, SourceError
from plait.node.reports.progress import Progress

TABLE = pa.table({"ts": pa.array([0, 1, 2], pa.timestamp("us")), "k": [1, 1, 2], "v": [7, 8, 9]})


def test_a_common_column_is_a_key() -> None:
    question = plait.join(a=TABLE, b=TABLE, c=TABLE).on("k").within("1 second")
    assert [str(e) for e in question.query.equalities] == ["a.k = b.k", "a.k = c.k"]
    both = plait.join(a=TABLE, b=TABLE).on("k", "v").within("1 second").query
    assert [str(e) for e in both.equalities] == ["a.k = b.k", "a.v = b.v"]
    with pytest.raises(QueryError, match="a int is not a condition; write it as text"):
        plait.join(a=TABLE, b=TABLE).on(1)  # type: ignore[arg-type]  # what is refused


def test_frames_of_other_libraries_go_in_and_out() -> None:
    frame = TABLE.to_pandas()
    question = plait.join(a=frame, b=TABLE).on("k").within("1 second").select("a.k", "b.v")
    found = question.run()
    assert found.to_arrow().num_rows == len(found.to_pandas()) == 5
    assert isinstance(found.to_pandas(), pd.DataFrame)
    assert pa.table(found) == found.to_arrow()
    assert repr(found).startswith("Results(5 rows of k, v; ")
    assert isinstance(question, plait.Join)


def test_polars_goes_in_and_out() -> None:
    frame = pl.from_arrow(TABLE)
    found = plait.join(a=frame, b=TABLE).on("k").within("1 second").select("a.k", "b.v").run()
    told = found.to_polars()
    assert isinstance(told, pl.DataFrame)
    assert told.to_arrow().cast(found.table.schema).equals(found.table) and told.height == 5


def test_relations_and_files_are_sources(tmp_path: Path) -> None:
    import duckdb
    import pyarrow.csv
    import pyarrow.parquet

    pyarrow.parquet.write_table(TABLE, tmp_path / "b.parquet")
    pyarrow.csv.write_csv(TABLE, tmp_path / "c.csv")
    relation = duckdb.connect().from_arrow(TABLE)
    question = (
        plait.join(a=relation, b=tmp_path / "b.parquet", c=str(tmp_path / "c.csv"))
        .on("k")
        .within("1 second")
        .select("a.k", "c.v")
    )
    assert question.run().to_arrow().num_rows == 9
    with pytest.raises(SourceError, match=r"nowhere\.parquet"):
        plait.join(a=TABLE, b="nowhere.parquet")


def test_short_texts_and_named_options() -> None:
    question = plait.join(a=TABLE, b=TABLE).on("k").within("1 second")
    assert repr(question) == "Join(a, b on a.k = b.k)"
    assert question.run(plan="mjoin", batch_rows=1).to_arrow().num_rows == 5
    with pytest.raises(TypeError, match="batch_row"):
        question.run(batch_row=1)  # type: ignore[call-arg]  # what is refused


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    found = plait.join(a=TABLE, b=TABLE).on("k").within("1 second").run()
    with pytest.raises(MissingRequirement, match="polars is not installed; pip install polars"):
        found.to_polars()


def test_progress_as_plain_values() -> None:
    assert json.loads(Progress(processed=3).to_json()) == json.loads(
        json.dumps(Progress(processed=3).to_dict())
    )


WITHOUT_SPARK = """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "pandas", "py4j", "duckdb", "hypothesis"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Gone())
import plait
from plait import *
assert hasattr(plait, "attach") and not hasattr(plait, "nothing")
import pydoc
assert "attach" in pydoc.plain(pydoc.render_doc(plait))
for call in (lambda: plait.attach(None), lambda: plait.spark.partitions(None)):
    try:
        call()
    except plait.errors.MissingRequirement as error:
        assert "needs pyspark" in str(error) and "pip install 'plait[spark]'" in str(error), error
    else:
        raise AssertionError
from plait.cli import main
assert main(["bench", "--list"]) in (0, 2)
"""


@pytest.mark.slow
def test_the_core_without_spark() -> None:
    """Regression: help(plait), `import *` and hasattr raised; `./dev bench` had a traceback."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
