"""The `plait` command.

`app` lists the commands by group. `asking`, `query`, `env` and `delta` have a function for each,
and `options` has what they share. A command imports what it needs when it runs, so
`plait --help` is quick. The laboratory uses `entry`, `options` and `show`; nothing else imports
this package. Begin with `app`.
"""

from __future__ import annotations


def main(arguments: list[str] | None = None) -> int:
    """Run the `plait` command; the exit code is 0, 2 for an error, or 128 plus a signal."""
    from plait.cli.app import app
    from plait.cli.entry import run_app

    return run_app(app, "plait", arguments)
