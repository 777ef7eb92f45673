"""The console in a real browser: a query re-plans before one's eyes, and does what it is asked."""

from __future__ import annotations

import os
import shutil
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.adapt.conftest import batches
from tests.spark.test_adapt import POLICY, asked

import plait

webdriver = pytest.importorskip("selenium.webdriver", reason="pip install selenium")

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None,
        reason="Chromium is not there: apt-get install chromium chromium-driver",
    ),
]

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
)  # fmt: skip


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'browser'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    found = webdriver.Chrome(options=options, service=service)
    yield found
    found.quit()


class Feed:
    """A query whose batches come when they are told to."""

    def __init__(self, spark: SparkSession, where: Path) -> None:
        self._tables = batches(24, lambda s: "k" if s < 5 else "m")
        self._where, self.fed = where / "in", 0
        for name in self._tables[0]:
            (self._where / name).mkdir(parents=True)
        question = asked(spark, self._where, []).adapt(POLICY)
        checkpoint = str(where / "checkpoint")
        self.query: StreamingQuery = (
            question.to_df(checkpoint=checkpoint)
            .writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .start()
        )

    def batch(self) -> dict[int, str]:
        """One more batch; the plan that each processor runs after it."""
        number = self.fed
        for name, table in self._tables[number].items():
            _appear(self._where / name / f"{number:03}.parquet", table, number)
        self.fed += 1
        self.query.processAllAvailable()
        return dict(plait.attach(self.query).progress().plans)


def _appear(path: Path, table: pa.Table, number: int) -> None:
    new = path.parent.parent / f"new-{path.parent.name}"
    pq.write_table(table, new)
    os.utime(new, (1_700_000_000 + number, 1_700_000_000 + number))
    new.rename(path)


def until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def shown(browser: Any, selector: str) -> list[str]:
    """The texts of elements; what is replaced just now is looked for once more."""
    script = "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)"
    return [str(text) for text in browser.execute_script(script, selector)]


def photograph(browser: Any, name: str) -> None:
    """Keep the page as it looks, light and dark, wide and narrow, where somebody wants it."""
    folder = os.environ.get("PLAIT_SCREENSHOTS")
    if not folder:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    for width in (1400, 400):
        for scheme in ("light", "dark"):
            emulate = browser.execute_cdp_cmd
            feature = {"name": "prefers-color-scheme", "value": scheme}
            emulate("Emulation.setEmulatedMedia", {"features": [feature]})
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            emulate("Emulation.setDeviceMetricsOverride", size)
            tall = browser.execute_script("return document.documentElement.scrollHeight")
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
            emulate("Emulation.setDeviceMetricsOverride", size | {"height": min(tall, 4000)})
            browser.save_screenshot(str(Path(folder) / f"{name}-{width}-{scheme}.png"))
    emulate("Emulation.clearDeviceMetricsOverride", {})


def test_a_query_re_plans_and_obeys_in_the_browser(
    spark: SparkSession, tmp_path: Path, browser: Any
) -> None:
    feed = Feed(spark, tmp_path)
    console = None
    try:
        first = set(feed.batch().values())
        console = plait.attach(feed.query).console(control=True)
        base = console.url.partition("/?")[0]

        browser.get(base)
        assert "Refused" in shown(browser, "h1") and not shown(browser, ".running")
        browser.get(console.url)
        assert "token" not in browser.current_url, "it does not stay in the address"
        home = browser.current_url
        until(lambda: set(shown(browser, ".running")) == first, "the plan of the beginning")

        plans = first
        while plans == first:
            assert feed.fed < 20, "the streams have turned over long ago"
            plans = set(feed.batch().values())
        for _ in range(2):
            if set(shown(browser, ".running")) == plans:
                break
            plans = set(feed.batch().values())
        until(lambda: set(shown(browser, ".running")) == plans, "the plan has changed")
        assert any(plan in card for plan in plans for card in shown(browser, ".card"))
        assert shown(browser, ".mark.change") and shown(browser, ".graph .value")
        photograph(browser, "overview")

        browser.get(f"{home}processors")
        assert len(shown(browser, "#loads tbody tr")) == 2
        photograph(browser, "processors")

        pinned = "(s0 (s1 s2))" if "(s0 (s1 s2))" not in plans else "((s0 s1) s2)"
        browser.get(f"{home}control")
        browser.execute_script("document.getElementById('plan').value = arguments[0]", pinned)
        _press(browser, "preview")
        until(lambda: bool(shown(browser, "#preview")), "the preview")
        assert "CPU" in shown(browser, "#preview")[0] and "pause" in shown(browser, "#preview")[0]
        photograph(browser, "control")
        _press(browser, "pin")
        until(lambda: "epoch 1" in shown(browser, "#asked")[0], "the driver has answered")
        feed.batch()
        until(lambda: set(shown(browser, ".running")) == {pinned}, "the pinned plan runs")
        until(lambda: "by 2 of 2" in shown(browser, "#asked")[0], "both have followed")
        assert set(feed.batch().values()) == {pinned} and pinned in shown(browser, "#held")[0]
        _press(browser, "release")
        until(lambda: "epoch 2" in shown(browser, "#asked")[0], "the driver has answered")
        feed.batch()
        until(lambda: "themselves" in shown(browser, "#held")[0], "it is released")
        with closing(plait.attach(feed.query).metrics(port=0)) as metrics:
            text = urllib.request.urlopen(metrics.url, timeout=10).read().decode()
            assert f'stream="s0"}} {1000 * feed.fed}' in text.replace(".0", "")
        complaints = [entry["message"] for entry in browser.get_log("browser")]
        assert not [text for text in complaints if "403" not in text], "of scripts or the policy"
    finally:
        if console is not None:
            console.close()
        feed.query.stop()


def _press(browser: Any, action: str) -> None:
    browser.find_element("css selector", f"button[value={action}]").click()
