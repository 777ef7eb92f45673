"""Mailboxes: which checkpoint and which mail belong together, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.errors import CheckpointMismatch, SiteError
from plait.sites.spark.mail import Letter, Mailbox, checked


def _batches(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()


def test_what_was_written_together_is_accepted(tmp_path: Path) -> None:
    box, checkpoint = Mailbox(tmp_path / "box"), tmp_path / "checkpoint"
    box.prepare(["all"])
    box.check("all", checkpoint)
    _batches(checkpoint / "offsets", "8", "9", "10", ".10.crc")
    _batches(checkpoint / "commits", "8", "9")
    # The sink may have the last batch that was planned, or not.
    _batches(box.mail("all") / "_spark_metadata", "9.compact")
    box.check("all", checkpoint)
    _batches(box.mail("all") / "_spark_metadata", "10")
    box.check("all", checkpoint)


def test_old_mail_with_a_new_checkpoint_is_refused(tmp_path: Path) -> None:
    box = Mailbox(tmp_path / "box")
    box.prepare(["all"])
    _batches(box.mail("all") / "_spark_metadata", "0")
    with pytest.raises(CheckpointMismatch, match=r"up to batch 0, but .* has no batch"):
        box.check("all", tmp_path / "new")


def test_an_old_checkpoint_with_new_mail_is_refused(tmp_path: Path) -> None:
    box, checkpoint = Mailbox(tmp_path / "box"), tmp_path / "checkpoint"
    box.prepare(["all"])
    _batches(checkpoint / "offsets", "3")
    _batches(checkpoint / "commits", "3")
    with pytest.raises(CheckpointMismatch, match="come to batch 3, but the mail of all has no"):
        box.check("all", checkpoint)


def test_mail_of_another_question_is_refused() -> None:
    with pytest.raises(SiteError, match="mail from oslo belongs to another question"):
        checked("mine", Letter.sent("other", "oslo", None, 1, b"x"))
