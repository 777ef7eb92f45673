"""The `plait` command.

`app` lists the commands with their options; what each does is in the modules beside it. A command
imports what it needs when it runs, so `plait --help` is quick. Nothing imports this package.
"""

from __future__ import annotations


def main(arguments: list[str] | None = None) -> int:
    """Run the `plait` command; the exit code is 0, 2 for an error, or 128 plus a signal."""
    from plait.cli.app import app
    from plait.cli.running_app import run_app

    return run_app(app, "plait", arguments)
