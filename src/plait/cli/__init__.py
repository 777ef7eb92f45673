"""The `plait` command. What a command needs is imported when it runs: `plait --help` is quick."""

from plait.cli.app import main

__all__ = ["main"]
