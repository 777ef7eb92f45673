"""Mail between sites on Spark: what an application sends is a folder that Spark's file sink writes.

Each application that runs sites has one folder in the mailbox, `mail/<application>`, and is the
only one that writes there. Rows are divided into *boxes*: one for each site that gets packets, one
for results, one for rows that were set aside, one for reports. A box is a directory, so whoever
reads one box does not touch the bytes of the others.

*Exactly once.* Spark's file sink has a log (`_spark_metadata`) of the files of each batch. A batch
is in it as a whole or not at all, and a repeated batch is not written again. Spark's file source
reads that log, and notes in its own checkpoint which files belong to which batch. So a reader sees
the files of completed batches only, each in one batch, whoever is killed and when. A source that
finds files but no log would take all files; so the log is there before anybody looks (`prepare`).

*Clocks.* Spark's file source leaves out files that are a week older than the newest one that it has
read, by the clocks of those who wrote them. One batch that was written with a wrong clock would
make it deaf. So no age is too old here (`AGELESS`), and nothing else decides by modification times:
no file limits, no cleaning by Spark; `mail_sweep` goes by batches.

*Damage.* A row has a digest, and the question that it belongs to. A packet that is not as it was
sent, or whose file is missing or cannot be read, counts as lost: it was not acknowledged, so it is
sent again (`plait.sites.site.links`). Results are not: `checked` refuses those that are damaged, a
missing file of results ends the reader's query, whatever the session says about such files, and
the query goes on from its checkpoint when the file is back. Mail for another question is refused.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from plait.errors import CheckpointMismatch, SiteError, SourceError
from plait.machine.drafts import write_whole
from plait.query.names import quoted
from plait.sites.spark.mailboxes import LOG, SITES

MAIL = (
    StructType()
    .add("question", StringType())
    .add("origin", StringType())
    .add("channel", StringType())
    .add("number", LongType())
    .add("digest", BinaryType())
    .add("body", BinaryType())
    .add("box", StringType())
)
"""What is sent; files are divided by `box`."""

AGELESS = {"maxFileAge": f"{2**63 - 1}ms"}
"""The option of Spark's file source with which no file is too old to be read."""

RESULTS, ASIDE = "results", "aside"
"""The boxes that are no site's, beside that of reports."""

_UNSAFE = "\"#%'*/:=?\\\x7f{[]^"
"""What Spark escapes in names of directories, beside control characters."""
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def box_of(site: str) -> str:
    """The box of the packets for a site; no site has the name of another box.

    >>> box_of("results")
    'to-results'
    """
    return f"to-{site}"


def escaped(value: str) -> str:
    """A value as Spark writes it in the name of a directory.

    >>> escaped("to-São Paulo: 1"), escaped("to-50%")
    ('to-São Paulo%3A 1', 'to-50%25')
    """
    return "".join(f"%{ord(c):02X}" if c in _UNSAFE or ord(c) < 32 else c for c in value)


class Letter(NamedTuple):
    """A row of mail. Its digest says whether it is as it was sent."""

    question: str
    origin: str
    channel: str | None
    number: int
    digest: bytes
    body: bytes

    @classmethod
    def sent(
        cls, question: str, origin: str, channel: str | None, number: int, body: bytes
    ) -> Letter:
        """A letter with its digest.

        >>> letter = Letter.sent("q", "oslo", "rows", 7, b"packet")
        >>> letter.intact, letter._replace(number=8).intact, letter._replace(body=b"x").intact
        (True, False, False)
        """
        return cls(
            question,
            origin,
            channel,
            number,
            _digest(question, origin, channel, number, body),
            body,
        )

    @property
    def intact(self) -> bool:
        """Whether it is as it was sent."""
        question, origin, channel, number, digest, body = self
        return digest == _digest(question, origin, channel, number, body)


def _digest(question: str, origin: str, channel: str | None, number: int, body: bytes) -> bytes:
    about = repr((question, origin, channel, number)).encode()
    return hashlib.blake2b(about + body, digest_size=8).digest()


def checked(question: str, letter: Letter) -> bytes:
    """The body of a letter that is as it was sent, for the same question.

    >>> letter = Letter.sent("q", "oslo", None, 1, b"x")
    >>> checked("q", letter)
    b'x'
    >>> checked("q", letter._replace(body=b"y"))
    Traceback (most recent call last):
    plait.errors.SourceError: mail from oslo is damaged; put its files back from a copy
    """
    if not letter.intact:
        raise SourceError(
            f"mail from {quoted(letter.origin)} is damaged", remedy="put its files back from a copy"
        )
    if question != letter.question:
        raise SiteError(
            f"mail from {quoted(letter.origin)} belongs to another question",
            remedy="ask the same question at all sites, or give each question a mailbox of its own",
        )
    return letter.body


def local_folder(mailbox: str | os.PathLike[str]) -> Path:
    """The folder of a mailbox, which must be one of a file system.

    >>> str(local_folder("file:///mnt/shared/mail"))
    '/mnt/shared/mail'
    >>> local_folder("s3://bucket/mail")
    Traceback (most recent call last):
    plait.errors.SourceError: the mailbox 's3://bucket/mail' is no folder of a file system; \
give one that all sites can reach, such as a mounted one
    """
    text = os.fspath(mailbox)
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    if _SCHEME.match(text):
        raise SourceError(
            f"the mailbox {os.fspath(mailbox)!r} is no folder of a file system",
            remedy="give one that all sites can reach, such as a mounted one",
        )
    return Path(text).absolute()


class Mailbox:
    """A folder that the applications of a join share: their mail, and orders to them."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self.folder = local_folder(place)

    def mail(self, application: str) -> Path:
        """What an application sends."""
        return self.folder / "mail" / application

    def box(self, application: str, site: str) -> Path:
        """The packets of an application for a site, in a directory as Spark names it."""
        return self.mail(application) / f"box={escaped(box_of(site))}"

    @property
    def orders(self) -> Path:
        """What all applications are told."""
        return self.folder / "orders"

    def prepare(self, applications: Iterable[str]) -> None:
        """Have all folders, each with the log by which Spark knows which files count."""
        for application in applications:
            (self.mail(application) / LOG).mkdir(parents=True, exist_ok=True)
        self.orders.mkdir(parents=True, exist_ok=True)

    def describe(self, text: str) -> None:
        """Say which sites there are and what their first plan is, for who looks into it."""
        write_whole(self.folder / SITES, text)

    def check(self, application: str, checkpoint: str | os.PathLike[str]) -> None:
        """Refuse a checkpoint and mail that do not belong together.

        Spark's sink leaves out batches that are in its log. With a new checkpoint and old mail,
        the first batches would be lost in silence.
        """
        place = local_folder(checkpoint)
        written = _newest(self.mail(application) / LOG)
        planned, committed = _newest(place / "offsets"), _newest(place / "commits")
        if written > planned:
            raise CheckpointMismatch(
                f"the mail of {quoted(application)} has been written up to batch {written}, but "
                f"{place} has {'no batch' if planned < 0 else f'come to batch {planned}'}",
                remedy="start it with the checkpoint that it was written with, or all sites with a "
                "new mailbox",
            )
        if committed > written:
            raise CheckpointMismatch(
                f"{place} has come to batch {committed}, but the mail of {quoted(application)} "
                f"has {'no batch' if written < 0 else f'only been written up to {written}'}",
                remedy="start it with the mailbox that it was started with before",
            )

    def stream(self, session: SparkSession, application: str, *, lossy: bool = False) -> DataFrame:
        """What an application sends, as a stream; a `lossy` one goes on without damaged files."""
        reader = session.readStream.schema(MAIL).options(**AGELESS)
        reader = reader.option("ignoreMissingFiles", lossy).option("ignoreCorruptFiles", lossy)
        return reader.parquet(str(self.mail(application)))

    def stored(self, session: SparkSession, applications: Iterable[str]) -> DataFrame:
        """What applications have sent so far."""
        frames = [
            session.read.schema(MAIL).parquet(str(self.mail(application)))
            for application in applications
        ]
        return reduce(DataFrame.unionAll, frames)


def _newest(log: Path) -> int:
    """The last batch in a log of Spark; -1 if there is none."""
    if not log.is_dir():
        return -1
    names = (name.removesuffix(".compact") for name in os.listdir(log))
    return max((int(name) for name in names if name.isdigit()), default=-1)
