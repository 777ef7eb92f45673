"""Make and run a command line: errors as one line with a remedy, signals as exit codes."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from plait import __version__
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
"""Packages that the core does not bring, and the extra of Plait that does."""


class CommandGroup(TyperGroup):
    """Commands that are listed in order; of one that does not exist, the nearest is named."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Find a command, or refuse its name with the one that was meant."""
        found = super().get_command(ctx, cmd_name)
        if found is None:
            root = ctx.find_root()
            known = [*_command_names(root.command, root.info_name)]
            raise PlaitError(
                f"there is no command {ctx.command_path} {cmd_name}",
                remedy=_meant(f"{ctx.command_path} {cmd_name}", known)
                or f"{ctx.command_path} --help lists them",
            )
        return found


def _command_names(command: Any, path: str) -> Iterator[str]:
    """List every command below, by the words that are typed."""
    if not isinstance(command, TyperGroup):
        yield path
        return
    for name, each in command.commands.items():
        yield from _command_names(each, f"{path} {name}")


def _meant(typed: str, known: list[str]) -> str:
    """Name the command that was meant, by its last word.

    >>> _meant("plait console", ["plait run", "plait query console"])
    'did you mean plait query console?'
    >>> _meant("plait query rebalence", ["plait run", "plait query rebalance"])
    'did you mean plait query rebalance?'
    """
    by_word = {name.split()[-1]: name for name in known}
    near = difflib.get_close_matches(typed.rsplit(maxsplit=1)[-1], by_word, n=1)
    return f"did you mean {by_word[near[0]]}?" if near else ""


def new_app(name: str, about: str) -> typer.Typer:
    """Make a command line without commands; it knows --version and --help."""
    app = _typer(name, about)

    @app.callback(invoke_without_command=True)
    def begin(
        context: typer.Context,
        version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
    ) -> None:
        if version:
            print(f"{name} {__version__}")
            raise typer.Exit
        if context.invoked_subcommand is None:
            print(context.get_help())

    return app


def new_group(app: typer.Typer, name: str, about: str) -> typer.Typer:
    """Add a group of commands, which shows its help if no command is given."""
    group = _typer(name, about)

    @group.callback(invoke_without_command=True)
    def begin(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())

    app.add_typer(group)
    return group


def _typer(name: str, about: str) -> typer.Typer:
    return typer.Typer(
        name=name,
        cls=CommandGroup,
        help=about,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


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
