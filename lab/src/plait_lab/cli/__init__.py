"""The `plait-lab` command: benchmarks, experiments and torture.

`app` lists the commands with their options; `measuring` and `torturing` carry them out. It shares
the running of commands with `plait.cli`. Begin with `app`.
"""

from __future__ import annotations


def main(arguments: list[str] | None = None) -> int:
    """Run the `plait-lab` command; the exit code is 1 if a claim or an answer was wrong."""
    from plait.cli.entry import run_app
    from plait_lab.cli.app import app

    return run_app(app, "plait-lab", arguments)
