"""What `plait.spark.doctor` says of workers that cannot run Plait."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException

from plait.spark.environment import doctor as examine


class Session:
    """A session, and a frame of it, whose workers fail with what they are told."""

    def __init__(self, failure: str) -> None:
        self.failure = failure

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self

    def collect(self) -> list[Any]:
        raise PySparkException(self.failure)


@pytest.mark.parametrize(
    ("failure", "subject", "told", "remedy"),
    [
        ("ModuleNotFoundError: No module named 'plait'", "Plait of the workers",
         "it is not installed", "install it there, or ship it with spark.submit.pyFiles"),
        ("Cannot run program python3\nat ...", "workers", "Cannot run program python3",
         "see that Python and PySpark start there"),
    ],
)  # fmt: skip
def test_workers_that_cannot_run_plait(
    monkeypatch: pytest.MonkeyPatch, failure: str, subject: str, told: str, remedy: str
) -> None:
    monkeypatch.setattr(examine, "parallelism", lambda _: 2)
    session: Any = Session(failure)
    (found,) = examine._workers(session)
    assert found == examine.Finding(subject, "wrong", told, remedy)


def test_workers_that_compile_pyspark_each_time_are_named() -> None:
    found = examine._bytecode(False)
    assert found.verdict == "note" and "PYTHONDONTWRITEBYTECODE is set" in found.found
    assert "spark.executorEnv.PYTHONDONTWRITEBYTECODE" in found.remedy
