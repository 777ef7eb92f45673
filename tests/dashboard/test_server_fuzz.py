"""Requests of every kind, right and wrong: no mistake, no redirect elsewhere, nothing asked for.

A request is a line of bytes, made at random of parts that are right, foreign, doubled, damaged or
far too long. What may ask for a plan is known by its parts, and only that may leave a request.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import quote, urlencode

import pytest
from tests.dashboard.test_server import Visitor

from plait.dashboard.reading.watcher import watch_checkpoint
from plait.dashboard.server import Console
from plait.dashboard.serving import MetricsServer
from plait.spark.control.plan_requests import PlanRequests

METHODS = ("GET", "GET", "HEAD", "POST", "POST", "PUT", "OPTIONS", "TRACE", "CONNECT", "get",
           "PO ST", "\x00", "G" * 500, "DELETE", "PROPFIND")  # fmt: skip
PATHS = (
    "/", "/control", "/control", "/decisions", "/processors", "/join/0", "/metrics",
    "/static/style.css", "/static/..%2fserver.py", "/static/../server.py", "/control/",
    "/control%00", "/%63ontrol", "//control", "/./control", "/../control", "/;/control",
    "/control?csrf=x", "/join/" + "9" * 5000, "/join/-1", "/join/٣", "//evil.example/",
    "/\\evil.example", "http://evil.example/", "*", "", "/" + "x" * 20_000, "/" + "x" * 70_000,
    "/%", "/%ff%fe", "/ä", "/a b", "/?" + "a=b&" * 5000, "/?span=all&processor=3",
    "/?span=" + "9" * 5000, "/?processor=%00", "/#x",
)  # fmt: skip
ODD = (("X", "y" * 70_000), ("Upgrade", "websocket"), (" ", "x"), ("Expect", "100-continue"),
       ("X:Y", "z"), ("Authorization", "Bearer ä"))  # fmt: skip
NUMBERS = ("0", "5", "-5", "+5", "1e3", "٣", "5, 5", "9" * 40, "x", "")
PLANS = ("", "(trades quotes)", "(((trades quotes) news) ratings)", "(" * 30_000, "\x00", "ä" * 500,
         "mjoin", "eddies", "{", "[[[", "x" * 60_000, "%", "((((", ")" * 100)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sent:
    """A request, and whether it has all that asking for a plan needs."""

    raw: bytes
    may_ask: bool
    method: str


class Fuzzer:
    """Makes requests; knows everything that a page of the console knows."""

    def __init__(self, console: Console, random: Random) -> None:
        self._friend = Visitor(console, known=True)
        self._csrf, self._token = self._friend.csrf, console.url.partition("token=")[2]
        self._random, self._care = random, 0.5

    def _mostly(self, right: str, *wrong: str) -> str:
        return right if self._random.random() < self._care else self._random.choice(wrong)

    def _one(self, right: str, *wrong: str) -> tuple[str, ...]:
        """The right value, mostly; or a wrong one, none, or two."""
        random = self._random
        if random.random() < self._care:
            return (right,)
        other = random.choice(wrong)
        return random.choice([(), (other,), (right, other), (other, right), (right, right)])

    def request(self) -> Sent:
        """Another one."""
        random, friend = self._random, self._friend
        here, evil = friend.host, "evil.example"
        self._care = random.choice([0.3, 0.6, 0.98])
        method, path = self._mostly("POST", *METHODS), self._mostly("/control", *PATHS)
        home = self._mostly(friend.home, "", "/x", friend.home[:-1], friend.home * 2)
        if random.random() > self._care:
            path += random.choice(["?", "&"]) + random.choice(
                [f"token={self._token}", "token=x", "token=", f"token={self._token}&token=x"]
            )
        hosts = self._one(
            here, evil, "", "127.0.0.1", f"{evil}:{friend.port}", "a" * 5000, "[::1", "ä"
        )
        origins = self._one(f"http://{here}", f"http://{evil}", "null", "", f"http://{here}.evil")
        cookies = self._one(friend.cookie, "", "x", "plait-join=" + "9" * 5000, ";;;=", "ä=ö",
                            f"{friend.cookie}; plait-join=٣", friend.cookie + "x")  # fmt: skip
        sites = self._one("same-origin", "cross-site", "same-site")
        csrf = self._mostly(self._csrf, "", "x", "\ud800")
        action = self._mostly("release", "pin", "preview", "migrate", "stop", "")
        plan = self._mostly("", *PLANS)
        form = {"csrf": csrf, "action": action, "plan": plan, "strategy": "auto"}
        body = _encoded(form)
        if random.random() > self._care:
            body = random.choice([b"", body[: len(body) // 2], b"\xff" * 50])
        lengths = self._one(str(len(body)), *NUMBERS)
        headers = [
            *(("Host", value) for value in hosts),
            *(("Origin", value) for value in origins),
            *(("Cookie", value) for value in cookies),
            *(("Sec-Fetch-Site", value) for value in sites),
            *(("Content-Length", value) for value in lengths),
        ]
        if random.random() < (1 - self._care) / 4:
            headers.append(("Transfer-Encoding", random.choice(["chunked", "gzip", "x, chunked"])))
        if random.random() < (1 - self._care) / 4:
            headers.append(random.choice(ODD))
        random.shuffle(headers)
        version = self._mostly("HTTP/1.1", "HTTP/1.0", "HTTP/1.1", "HTTP/9.9", "")
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        head = f"{method} {home}{path} {version}\r\n{lines}\r\n"
        may_ask = (
            method == "POST"
            and hosts == (here,)
            and origins == (f"http://{here}",)
            and sites in ((), ("same-origin",))
            and any(friend.cookie in c for c in cookies)
            and csrf == self._csrf
            and home == friend.home
        )
        return Sent(head.encode() + body, may_ask, method)


def _encoded(form: dict[str, str]) -> bytes:
    return urlencode(form, quote_via=quote, errors="surrogatepass").encode()


def answers(port: int, raw: bytes) -> bytes:
    """Everything that a server says to a request, after which it hears nothing more."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        try:
            line.sendall(raw)
            line.shutdown(socket.SHUT_WR)
            while part := line.recv(1 << 16):
                found += part
        except TimeoutError:
            raise AssertionError(f"it waits: {raw[:300]!r}") from None
        except OSError:
            pass  # it has heard enough
    return found


def check(said: bytes, sent: Sent) -> None:
    """No mistake, and no way elsewhere."""
    for status in re.findall(rb"^HTTP/1\.\d (\d+)", said, re.MULTILINE):
        assert int(status) < 500, (status, sent.raw[:300], said[:300])
    for place in re.findall(rb"(?i)^location: *(.*?)\r?$", said, re.MULTILINE):
        assert re.fullmatch(rb"/[0-9a-f]{32}/|control|\.\./", place), (place, sent.raw[:300])
    if said.startswith(b"HTTP/1.1 4") and b"text/html" in said and sent.method != "HEAD":
        assert b"<h1>" in said and b"<p>" in said, "it says what to do"


@pytest.fixture
def console(checkpoint: Path) -> Iterator[Console]:
    with Console(watch_checkpoint(checkpoint), control=True).start() as serving:
        yield serving


def fuzzed(console: Console, checkpoint: Path, seed: int, many: int) -> int:
    """How many plans were asked for, each by who may."""
    fuzzer, requests = Fuzzer(console, Random(seed)), PlanRequests(checkpoint / "plait" / "join")
    known: set[str] = set()
    for _ in range(many):
        sent = fuzzer.request()
        check(answers(console.port, sent.raw), sent)
        new = {name for name, _ in requests.waiting()} - known
        assert not new or sent.may_ask, sent.raw[:500]
        known |= new
    assert Visitor(console, known=True).get("/")[0] == 200
    return len(known)


def test_requests_of_every_kind(console: Console, checkpoint: Path) -> None:
    fuzzed(console, checkpoint, 0, 60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_very_many_requests_of_every_kind(console: Console, checkpoint: Path, seed: int) -> None:
    assert fuzzed(console, checkpoint, seed, 600), "some of them may"


@pytest.mark.slow
def test_metrics_do_not_wait_for_half_a_request(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("plait.dashboard.serving._Quiet.timeout", 1.0)
    metrics = MetricsServer(watch_checkpoint(checkpoint), 0)
    try:
        for sent in (b"", b"GET / HTT", b"GET / HTTP/1.1\r\nHost: 127"):
            with socket.create_connection(("127.0.0.1", metrics.port), timeout=15) as line:
                line.sendall(sent)
                while line.recv(4096):
                    pass  # until it is closed
    finally:
        metrics.close()
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_metrics_answer_requests_of_every_kind(console: Console, checkpoint: Path) -> None:
    fuzzer = Fuzzer(console, Random(5))
    metrics = MetricsServer(watch_checkpoint(checkpoint), 0)
    try:
        for _ in range(200):
            sent = fuzzer.request()
            check(answers(metrics.port, sent.raw), sent)
        assert b"plait_batch" in answers(metrics.port, b"GET /metrics HTTP/1.0\r\n\r\n")
        foreign = answers(metrics.port, b"GET /metrics HTTP/1.0\r\nHost: evil.example\r\n\r\n")
        assert b" 403 " in foreign and b"plait_batch" not in foreign
    finally:
        metrics.close()
