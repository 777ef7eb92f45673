"""Run a command line: errors as one line with a remedy, signals as exit codes."""

from __future__ import annotations

import os
import sys

import typer

from plait.errors import PlaitError

_EXTRAS = {
    "duckdb": "bench",
    "matplotlib": "bench",
    "psutil": "bench",
    "hypothesis": "torture",
    "pandas": "spark",
    "pyspark": "spark",
    "prometheus_client": "metrics",
    "starlette": "console",
    "uvicorn": "console",
}
"""What the core does not bring: packages, and the extra of Plait that has them."""


def run_app(app: typer.Typer, name: str, arguments: list[str] | None = None) -> int:
    """Run a command line; the exit code is 0, 1 (a claim failed), 2 (error), 128 + signal."""
    from plait.cli.show import show_error
    from plait.cli.signals import Stopped, stoppable
    from plait.machine.heap import keep_freed_memory

    keep_freed_memory()
    usage_error = typer.BadParameter.__base__
    assert usage_error is not None
    try:
        with stoppable(_abandon_drafts):
            code = app(arguments, prog_name=name, standalone_mode=False)
            if sys.stdout is not None:
                sys.stdout.flush()
    except PlaitError as error:
        if os.environ.get("PLAIT_TRACEBACK"):
            raise
        show_error(error.message, error.remedy)
        return 2
    except ModuleNotFoundError as error:
        if os.environ.get("PLAIT_TRACEBACK") or str(error.name) not in _EXTRAS:
            raise
        extra = _EXTRAS[str(error.name)]
        show_error(f"this needs {error.name}", f"pip install 'plait[{extra}]' brings it")
        return 2
    except (OSError, RecursionError, MemoryError) as error:
        if os.environ.get("PLAIT_TRACEBACK"):
            raise
        _leave_standard_output()
        show_error(*_limit_of_the_machine(error))
        return 2
    except (typer.Abort, KeyboardInterrupt):
        code = 130
    except Stopped as stopped:
        print(f"stopped by {stopped}", file=sys.stderr)
        return stopped.code
    except usage_error.__base__ as error:  # type: ignore[misc]  # its type is found at run time
        remedy = getattr(error, "ctx", None)
        command = remedy.command_path if remedy is not None else name
        show_error(error.format_message().rstrip("."), f"{command} --help shows what there is")
        return 2
    if code == 130:
        print("interrupted", file=sys.stderr)
    return code if isinstance(code, int) else 0


def _limit_of_the_machine(error: OSError | RecursionError | MemoryError) -> tuple[str, str]:
    """What to say when the system cannot go on, where no part of the program knows better."""
    if isinstance(error, RecursionError):
        return "something is nested too deeply", "look at the query, the plan and the files given"
    if isinstance(error, MemoryError):
        return "there is not enough memory", "give less at once, or run it on a larger machine"
    reason = error.strerror or str(error)
    if error.filename is None:
        return f"standard output cannot be written: {reason}", "check where it goes"
    return f"{os.fsdecode(error.filename)}: {reason}", "check the path and its permissions"


def _leave_standard_output() -> None:
    """Let what cannot be written go, or Python tries again at its end and complains."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _abandon_drafts() -> None:
    """Remove the files in the making, if the module that makes them was needed at all."""
    drafts = sys.modules.get("plait.machine.drafts")
    if drafts is not None:
        drafts.abandon_drafts()
