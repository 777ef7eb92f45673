"""`plait env`: commands for the machine that Plait runs on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer


def java() -> None:
    """Print the folder of the Java that Spark runs on: export JAVA_HOME=$(plait env java)."""
    from plait.spark.environment.java import provide_java

    print(provide_java())


def doctor(
    spark: Annotated[
        bool, typer.Option("--spark", help="Start a local Spark, too, and check its workers.")
    ] = False,
) -> None:
    """Check all that queries of Plait depend on here; exit with 1 if something is wrong.

    For a session of your own, call plait.spark.doctor(session) in its driver.
    """
    from plait.cli.show import say
    from plait.spark.environment.doctor import doctor as examine

    if not spark:
        findings = examine()
    else:
        with local_spark("plait env doctor") as session:
            findings = examine(session)
    say(str(findings))
    raise typer.Exit(0 if findings.ok else 1)


@contextmanager
def local_spark(name: str) -> Iterator[Any]:
    """Start a Spark in this process, and stop it when the context ends."""
    import tempfile

    from plait.cli.live import waiting
    from plait.spark.environment.session import session

    with tempfile.TemporaryDirectory(prefix="plait-") as scratch:
        log = Path(scratch) / "spark.log"
        with waiting("starting Spark ..."):
            started = session(name=name, scratch=Path(scratch), log=log)
        try:
            yield started
        finally:
            started.stop()


def calibrate(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where to keep the costs. [default: where the cost model looks for them]",
            show_default=False,
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            "--repeats", min=1, metavar="N", help="Runs of each workload; the fastest counts."
        ),
    ] = 3,
) -> None:
    """Measure what operations cost on this machine, for the cost model (some seconds)."""
    from dataclasses import asdict

    from plait.cli.show import console, on_terminal, say
    from plait.local.calibrate import calibrate as measure
    from plait.machine.drafts import writing
    from plait.optimize.costs import costs_path, save

    path = out or costs_path()
    with console(stderr=True).status("measuring") as status:

        def note(text: str) -> None:
            if on_terminal():
                status.update(text)

        found = measure(repeats, note=note)
    with writing(path):
        save(found.costs, path)
    for name, value in asdict(found.costs).items():
        say(f"{name:<8} {1e9 * value:12.2f} ns")
    say(f"median error of the fit over {found.runs} runs: {100 * found.error:.1f} %")
    say(f"written: {path}")


def warm() -> None:
    """Compile the kernels into the environment, so that no query waits for it later."""
    from plait.cli.live import waiting
    from plait.kernels.warm import warm as compile_kernels

    with waiting("compiling the kernels ..."):
        compile_kernels()
