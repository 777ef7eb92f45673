"""Sites inside `transformWithStateInPandas`: one grouping key is one site.

*Exactly once.* The state of a site is in Spark's state store, and all that comes out of a step is
rows for one file sink (`mail`). A task writes both, and the sink logs a batch when all its tasks
have ended, so whoever dies before that has sent nothing: the batch is repeated from the state
before. A batch that the sink has logged is not run again, and its state is complete. If two
attempts of one task race, as with speculation, state and mail may come from different ones. That is
sound, too: a step follows from the state before and the rows, packets and orders of the batch,
which Spark has logged. Only the order of rows within a batch may differ, and nothing depends on it:
the rows of a stamp are kept in the order of event time, rows of the same time leave together, and
all else is sets.

*Orders* (`site_orders`) come as rows of a source as well, with the names of their files, which are
written once. So a repeated batch hears the same ones.
The host's clock is the time of the batch, which is in Spark's log, too.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from plait.errors import CheckpointMismatch, SourceError
from plait.groups.routing.rows import decode_rows, encode_rows
from plait.query.names import quoted
from plait.sites.site.packets import SitePacket
from plait.sites.site.setup import SiteOutcome, SiteSetup
from plait.sites.site.site import Site
from plait.sites.spark.mail import ASIDE, MAIL, RESULTS, Letter, box_of, checked, local_folder
from plait.sites.spark.mailboxes import REPORTS
from plait.sites.spark.orders import WAKE, SiteOrder, read_order
from plait.sites.spark.progress import plan_status
from plait.spark.join.operator import SparkStore
from plait.spark.join.worker import settle

ROWS, PACKET, ORDER = "rows", "packet", "order"
"""What a row of the input is."""

_AGAIN = "whoever has sent it sends it again, as it is not acknowledged"
_LOG = logging.getLogger("plait")

_SITES: dict[str, Site] = {}
"""By the token of their state, the sites that this Python worker knows."""

_MOST_SITES = 64


@dataclass(slots=True)
class _SiteBatch:
    """What a batch brings to a site."""

    rows: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)
    packets: list[SitePacket] = field(default_factory=list)
    orders: list[SiteOrder] = field(default_factory=list)
    time: int = 0
    """That of the batch, in microseconds since 1970."""
    woken: bool = False
    """Whether it is time to send again what nobody has acknowledged (`site_waker`)."""
    notes: list[str] = field(default_factory=list)
    """What was left alone, and why."""


class SiteOperator(StatefulProcessor):
    """The stateful operator of an application that runs sites."""

    store: type[SparkStore] = SparkStore

    def __init__(self, setup: SiteSetup, keys: Mapping[int, str], question: str) -> None:
        self._setup = setup
        self._keys = dict(keys)
        self._question = question

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        settle()
        self._store = self.store(handle)

    def handleInputRows(  # Spark's name
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """One batch of a site."""
        del timerValues
        name = self._keys[int(key[0])]
        given = self._sorted_out(name, rows)
        site = self._site(name)
        followed = site.followed if site.step_number else None
        outcome = site.step(
            {stream: pa.concat_batches(batches) for stream, batches in given.rows.items()},
            sorted(given.packets),
            now=given.time,
            again=given.woken,
            wishes=[order.wish for order in sorted(given.orders, key=lambda order: order.place)],
            token=uuid.uuid4().hex,
            store=self._store,
        )
        outcome.report.notes += given.notes
        for note in given.notes:
            _LOG.warning("%s: %s", name, note)
        yield self._mail(site, outcome, followed)
        while len(_SITES) >= _MOST_SITES:
            del _SITES[next(iter(_SITES))]
        _SITES[site.token] = site

    def _site(self, name: str) -> Site:
        """The site whose state is in the store; taken out of the cache while it is at work."""
        contract = self._store.read_contract()
        if contract is None:
            self._store.write_contract(self._question)
        elif contract != self._question:
            raise CheckpointMismatch(
                f"the state of the site {quoted(name)} was written for another question",
                remedy="ask that question, or begin with a new checkpoint and a new mailbox",
            )
        header = self._store.read_header()
        token = None if header is None else json.loads(header).get("token")
        found = None if token is None else _SITES.pop(token, None)
        return found or Site.load(self._setup, name, self._store)

    def _sorted_out(self, name: str, frames: Iterator[pd.DataFrame]) -> _SiteBatch:
        """The rows of streams, the packets and the orders of a batch."""
        given = _SiteBatch()
        for frame in frames:
            for row in frame.itertuples(index=False):
                body, origin = bytes(row.body), str(row.origin)
                given.time = max(given.time, int(row.time))
                if row.kind == ROWS:
                    given.rows.setdefault(origin, []).extend(decode_rows(body))
                elif row.kind == ORDER:
                    self._order(body.decode(), given)
                else:
                    number, digest = int(row.number), bytes(row.digest)
                    letter = Letter(str(row.question), origin, row.channel, number, digest, body)
                    if letter.intact:
                        body = checked(self._question, letter)
                        given.packets.append(SitePacket(origin, name, number, body, row.channel))
                    else:
                        given.notes.append(f"a damaged packet is left out; {_AGAIN}")
        return given

    def _order(self, path: str, given: _SiteBatch) -> None:
        """Read an order, if it is one."""
        if path.endswith(WAKE):
            given.woken = True
            return
        try:
            given.orders.append(read_order(local_folder(path)))
        except SourceError as error:
            given.notes.append(str(error))

    def _mail(self, site: Site, outcome: SiteOutcome, followed: int | None) -> pd.DataFrame:
        """What comes out of a step, as rows for the sink."""
        report = outcome.report
        about = {**asdict(report), **plan_status(site, followed)}
        made: list[tuple[str, str, str | None, int, bytes]] = [
            (box_of(p.target), p.origin, p.channel, p.number, p.body) for p in outcome.packets
        ]
        for rows in outcome.results:
            made.append((RESULTS, site.name, None, report.step, encode_rows(rows)))
        made += [(ASIDE, a.reason, None, a.stream, encode_rows(a.rows)) for a in outcome.aside]
        made.append((REPORTS, site.name, None, report.step, json.dumps(about).encode()))
        return pd.DataFrame(
            [
                (*Letter.sent(self._question, origin, channel, number, body), box)
                for box, origin, channel, number, body in made
            ],
            columns=MAIL.names,
        )
