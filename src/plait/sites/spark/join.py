"""Joins over sites on Spark: each site is a node with its own operators and windows.

    home streams ─► pack ─┐
    mail (own box)  ──────┼─► transformWithStateInPandas, keyed by site ─► file sink ─► mail
    orders          ──────┘

An application runs some of the sites in one streaming query, whose output is mail: packets for
sites, results, rows set aside, and reports. Two deployments are the same code. With all sites in
one application, it reads its own mail: what a batch sends, the next one delivers. With one
application per site, each reads the mail of the others. `mail` says why nothing is lost or repeated
in either. Results are a box of the mail, and a second stream makes a DataFrame of it, so any sink
of Spark takes them.

A query runs a batch when there is something to read, and a site sends nothing unless it has
something to say, so everything comes to rest when no more rows come.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # the name everybody uses
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructType

from plait.errors import MigrationError, PolicyError, SourceError, UnknownSite, did_you_mean
from plait.groups.routing.rows import encode_rows, gathered
from plait.query.names import quoted
from plait.query.query import Query, narrowed
from plait.query.serde import query_to_dict
from plait.sites.planner.assumptions import GivenStatistics, site_setting
from plait.sites.planner.cost import SiteSetting, sep_costs
from plait.sites.planner.greedy import greedy
from plait.sites.planner.policy import PlacementPolicy
from plait.sites.plans.explain import explain
from plait.sites.plans.plan import Jep, Sites
from plait.sites.plans.serde import dumps
from plait.sites.site.progress import SitesProgress
from plait.sites.site.setup import SiteSetup
from plait.sites.spark.mail import AGELESS, MAIL, RESULTS, Mailbox, box_of, local_folder
from plait.sites.spark.mail_sweep import sweep
from plait.sites.spark.operator import ORDER, PACKET, ROWS, SiteOperator
from plait.sites.spark.orders import PATTERN, strays
from plait.sites.spark.progress import sites_progress
from plait.sites.spark.replans import ReplanResult, measured, replanned
from plait.sites.spark.results import results_in
from plait.sites.spark.settings import (
    GivenLink,
    given_homes,
    given_links,
    given_plan,
    site_options,
)
from plait.sites.spark.waker import Waker, keep_awake
from plait.spark.environment.partitions import partitions
from plait.spark.environment.requirements import check_packages, check_spark
from plait.spark.environment.settings import store_in_rocksdb
from plait.spark.join.instants import named_column
from plait.spark.join.murmur3 import processor_keys
from plait.spark.join.schemas import conform
from plait.spark.join.watermarks import warn_without_watermarks, without_watermark
from plait.spark.join.worker import settle
from plait.tuning import USUAL, Tuning

_LOG = logging.getLogger("plait")

ALL = "all"
"""The application that runs all sites."""

_INPUT = (
    StructType()
    .add("key", IntegerType())
    .add("kind", StringType())
    .add("question", StringType())
    .add("origin", StringType())
    .add("channel", StringType())
    .add("number", LongType())
    .add("digest", BinaryType())
    .add("body", BinaryType())
    .add("time", LongType())
)
"""What the operator reads; `time` is that of the batch, the same in a replay."""


_FILES = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
"""What Spark says of files; their content is not touched."""


class SiteQuestion(Protocol):
    """A join that can be asked: `plait.join(...)` or `plait.sql(...)`."""

    @property
    def query(self) -> Query:
        """The question as a checked value."""

    @property
    def sources(self) -> Mapping[str, Any]:
        """By stream, a DataFrame of Spark or at least a schema."""


@dataclass(frozen=True)
class PlacedJoin:
    """A join whose streams arrive at different sites. Make one with `plait.sites`."""

    sources: Mapping[str, Any]
    setup: SiteSetup
    here: tuple[str, ...]
    """The sites that this application runs."""

    @property
    def setting(self) -> SiteSetting:
        """What the plan was chosen from."""
        return self.setup.setting

    @property
    def plan(self) -> Jep:
        """Who joins what, and where."""
        return self.setup.jep

    @property
    def application(self) -> str:
        """The name of this application in the mailbox."""
        return ALL if self.here == self.setup.sites.names else f"site-{self.here[0]}"

    @property
    def question(self) -> str:
        """What tells mail and states of this join from those of others."""
        sites, query = self.setup.sites, query_to_dict(self.setup.query)
        about = [query, sites.homes, sites.results, self.setup.deliver]
        return hashlib.blake2b(json.dumps(about).encode(), digest_size=12).hexdigest()

    def explain(self) -> str:
        """Sites, links, the way of each head stream, and the operators of each site."""
        notes = {}
        for sep in self.plan.seps:
            seconds = sum(sep_costs(self.setting, sep))
            notes[sep.head] = f"{1000 * seconds:.3g} ms per second"
        return explain(self.setup.sites, self.plan, notes)

    def site(self, name: str) -> PlacedJoin:
        """The part of one site, to be run as an application of its own.

        Only the streams that arrive there have to be DataFrames; of the others a schema will do.
        """
        names = self.setup.sites.names
        if name not in names:
            raise UnknownSite(f"there is no site {name!r}", remedy=did_you_mean(name, names))
        return replace(self, here=(name,))

    def start(
        self,
        *,
        mailbox: str | os.PathLike[str],
        checkpoint: str | os.PathLike[str],
        **trigger: Any,
    ) -> StreamingQuery:
        """Start the application: all sites, or the one that `site` named.

        The mailbox is a folder that all applications of the join share, the checkpoint belongs to
        this one. What follows is Spark's trigger, such as `processingTime="1 second"`. It can be
        killed at any time and goes on from both.
        """
        box = Mailbox(mailbox)
        box.prepare(self._applications)
        box.check(self.application, checkpoint)
        box.describe(dumps(self.setup.sites, self.plan))
        for stray in strays(box.orders):
            _LOG.warning("%s", stray)
        session = self._session()
        warn_without_watermarks(self.setup.query)
        store_in_rocksdb(session)
        # A site is a key; keys are chosen so that each falls into a partition of its own.
        keys = dict(zip(processor_keys(len(self.here)), self.here, strict=True))
        inputs = self._inputs(session, box, {site: key for key, site in keys.items()})
        operator = SiteOperator(self.setup, keys, self.question)
        mail = inputs.groupBy("key").transformWithStateInPandas(operator, MAIL, "append", "none")
        writer = mail.writeStream.format("parquet").partitionBy("box").outputMode("append")
        writer = writer.option("checkpointLocation", str(local_folder(checkpoint)))
        if trigger:
            writer = writer.trigger(**trigger)
        with partitions(session, len(self.here)):
            query = writer.start(str(box.mail(self.application)))
        keep_awake(query, Waker(box, self.application))
        return query

    def to_df(self, mailbox: str | os.PathLike[str], *, late: bool | str = False) -> DataFrame:
        """The results that come out in this application, as a stream; any Spark sink takes it.

        With `late=True` (or a name), also the rows that were set aside, as with `join(...).to_df`.
        """
        box = Mailbox(mailbox)
        box.prepare(self._applications)
        mail = box.stream(self._session(), self.application)
        frames = {n: s for n, s in self.sources.items() if isinstance(s, DataFrame)}
        return results_in(mail, self.setup.query, self.question, late, frames)

    def progress(self, mailbox: str | os.PathLike[str]) -> SitesProgress:
        """What the sites have done so far, and what was sent over each link."""
        box = Mailbox(mailbox)
        box.prepare(self._applications)
        progress = sites_progress(box.stored(self._session(), self._applications))
        return replace(progress, strays=tuple(strays(box.orders)))

    def replan(
        self,
        mailbox: str | os.PathLike[str],
        *,
        links: Iterable[GivenLink] = (),
        plan: Jep | str | None = None,
        timeout: float = 60.0,
    ) -> ReplanResult:
        """Look for a better plan and change to it while the sites run; say what came of it.

        Rates, sizes of rows and selectivities are those that the sites have measured. `links` says
        which links have become slower or faster than they were said to be. A `plan` that is given
        is taken as it is; sites that change their plan by themselves refuse it. If a site does not
        answer in time, the plan stays as it is, and the MigrationError names the site.
        """
        progress = self.progress(mailbox)
        now = self.setting.with_links(progress.links)
        now = now.with_links(given_links(now.sites.names, links))
        now = now.with_statistics(measured(progress, now.statistics))
        given = None if plan is None else given_plan(now.sites, plan)
        if given is not None and self.setup.automatic:
            raise MigrationError(
                "the sites change their plan by themselves, so one that is given would not stay",
                remedy="give the plan to sites that do not: plait.sites.place(..., adapt=False)",
            )
        look = partial(self.progress, mailbox)
        return replanned(Mailbox(mailbox), now, self.plan, look, timeout, given)

    def sweep(self, mailbox: str | os.PathLike[str], checkpoint: str | os.PathLike[str]) -> int:
        """Remove packets that this application has read for good; how many files there were.

        It may run at any time, also beside the query. Results and reports are left alone.
        """
        box = Mailbox(mailbox)
        boxes = [box.box(a, site) for a in self._applications for site in self.here]
        return sweep(local_folder(checkpoint), boxes)

    @property
    def _applications(self) -> tuple[str, ...]:
        """All applications of this deployment."""
        if self.application == ALL:
            return (ALL,)
        return tuple(f"site-{name}" for name in self.setup.sites.names)

    @property
    def _streams(self) -> list[str]:
        """The streams that arrive here."""
        return [stream for stream, home in self.setup.sites.homes if home in self.here]

    def _session(self) -> SparkSession:
        """The session of the streams that arrive here, which must be streams of Spark."""
        check_packages()
        frames = []
        for stream in self._streams:
            source = self.sources[stream]
            if not isinstance(getattr(source, "isStreaming", None), bool):
                raise SourceError(
                    f"the source of {quoted(stream)} is a {type(source).__name__}, not a DataFrame",
                    remedy="give a streaming DataFrame for each stream that arrives here",
                )
            if not source.isStreaming:
                raise SourceError(
                    f"{quoted(stream)} is a static DataFrame, but sites join streams",
                    remedy="read it with readStream",
                )
            frames.append(source)
        session: SparkSession = frames[0].sparkSession
        check_spark(session.version)
        return session

    def _inputs(self, session: SparkSession, box: Mailbox, keys: Mapping[str, int]) -> DataFrame:
        """Everything that comes to the sites here, in the columns of `_INPUT`."""
        found = [self._packed(stream, keys) for stream in self._streams]
        boxes = {box_of(site): key for site, key in keys.items()}
        # One application reads its own mail; one of several reads that of the others.
        others = [a for a in self._applications if a != self.application] or [ALL]
        for application in others:
            # What is lost is sent again.
            mail = box.stream(session, application, lossy=True)
            mine = mail.where(F.col("box").isin(list(boxes)))
            found.append(_as_input(mine, _key_of(boxes), PACKET))
        # Only names are read here; an order that is gone again is not heard.
        reader = session.readStream.format("binaryFile").schema(_FILES).options(**AGELESS)
        orders = reader.option("ignoreMissingFiles", True).load(f"{box.orders}/{PATTERN}")
        told = orders.select(
            F.explode(F.array([F.lit(key) for key in keys.values()])).alias("key"),
            F.col("path").cast("binary").alias("body"),
        )
        found.append(_as_input(told, F.col("key"), ORDER))
        inputs = found[0]
        for frame in found[1:]:
            inputs = inputs.unionAll(frame)
        return inputs

    def _packed(self, stream: str, keys: Mapping[str, int]) -> DataFrame:
        """The rows of a stream for its home."""
        asked = self.setup.query.streams[self.setup.query.index(stream)]
        frame = without_watermark(self.sources[stream]).select(
            [named_column(f.name).alias(f"c{i}") for i, f in enumerate(asked.fields)]
        )
        pack = _pack(asked.schema, self.setup.tuning)
        rows = frame.mapInArrow(pack, StructType().add("body", BinaryType()))
        key = F.lit(keys[self.setup.sites.home(stream)])
        return _as_input(rows.withColumn("origin", F.lit(stream)), key, ROWS)


def place(
    question: SiteQuestion,
    *,
    at: Mapping[str, str | Sequence[str]],
    links: Iterable[GivenLink] = (),
    latency: float | None = None,
    rate: float | None = None,
    results: str | None = None,
    statistics: Mapping[str, GivenStatistics] | None = None,
    plan: Jep | str | None = None,
    adapt: PlacementPolicy | bool | None = None,
    tuning: Tuning = USUAL,
) -> PlacedJoin:
    """Place a join over streams that arrive at different sites.

        placed = plait.sites.place(
            plait.join(trades=trades, quotes=quotes).on("sym").within("10 seconds"),
            at={"oslo": ["trades"], "rome": ["quotes"]},
            latency=0.005, rate=1_000_000,              # seconds, and bytes per second
            links=[("oslo", "rome", 0.1, 10_000)],      # but this one is slow
            results="rome",
        )
        print(placed.explain())
        query = placed.start(mailbox="mail", checkpoint="checkpoint")
        placed.to_df("mail").writeStream.format(...).start()

    `at` says which streams arrive at which site. Links that are not listed have the general
    `latency` and `rate`. Results go to the site `results`; without one they come out where they are
    found. The plan is chosen for the links and for what is known of the streams: `statistics` gives
    `rate`, `factor`, `tuple_bytes` or `window` of some or all of them. Or it is given.

    While rows flow the sites measure their streams, and change the plan when that is worth it: with
    `adapt=plait.sites.PlacementPolicy(update="distributed", threshold=0.5)` among themselves, and
    if a cost has changed by half. With `adapt=False`, or a plan that is given, only `replan`
    changes it.

    Of what the join itself was told, `adapt(True)`, `adapt(False)` and the rates in `statistics`
    hold for sites, too. A budget, an engine and other settings are refused.
    """
    if not isinstance(adapt, PlacementPolicy | bool | None):
        raise PolicyError(
            f"adapt={adapt!r} is no policy",
            remedy="give True, False or a plait.sites.PlacementPolicy",
        )
    adapt, said = site_options(question, adapt, statistics or {})
    query = narrowed(question.query)
    homes = given_homes(query, at)
    names = tuple(at)
    if results is not None and results not in names:
        raise UnknownSite(
            f"results are to go to an unknown site {results!r}", remedy=did_you_mean(results, names)
        )
    joined = given_links(names, links, latency, rate)
    placed = Sites(names, homes, joined, results or RESULTS)
    setting = site_setting(query, placed, said)
    jep = greedy(setting) if plan is None else given_plan(placed, plan)
    setup = SiteSetup(
        query,
        placed,
        jep,
        tuning=tuning,
        deliver=results is not None,
        policy=adapt if isinstance(adapt, PlacementPolicy) else PlacementPolicy(),
        statistics=setting.statistics,
        automatic=plan is None if adapt is None else adapt is not False,
    )
    return PlacedJoin(dict(question.sources), setup, names)


def _key_of(boxes: Mapping[str, int]) -> Column:
    """The grouping key of the site that a box belongs to."""
    key = F.lit(None).cast("int")
    for box, number in boxes.items():
        key = F.when(F.col("box") == box, F.lit(number)).otherwise(key)
    return key


def _as_input(frame: DataFrame, key: Column, kind: str) -> DataFrame:
    """A frame in the columns of `_INPUT`; those that it lacks are null."""
    columns = [key.cast("int").alias("key"), F.lit(kind).alias("kind")]
    for field in _INPUT.fields[2:-1]:
        has = field.name in frame.columns
        value = F.col(field.name) if has else F.lit(None).cast(field.dataType)
        columns.append(value.alias(field.name))
    return frame.select(*columns, F.unix_micros(F.current_timestamp()).alias("time"))


Batches = Iterable[pa.RecordBatch]


def _pack(schema: pa.Schema, tuning: Tuning) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    def pack(batches: Batches) -> Iterator[pa.RecordBatch]:
        settle()
        conformed = (conform(batch, schema) for batch in batches)
        for rows in gathered(conformed, tuning.packet_rows, tuning.gathered_bytes):
            yield pa.record_batch({"body": pa.array([encode_rows(rows)], pa.binary())})

    return pack
