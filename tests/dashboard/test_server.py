"""The console over a socket: closed to strangers, open to who has the token."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from plait.dashboard.contents import watch_checkpoint
from plait.dashboard.server import Console
from plait.hosts.spark.plan_requests import PlanRequests

Answer = tuple[int, Mapping[str, str], str]


class Visitor:
    """Somebody who talks to a console; with `known`, by the cookie."""

    def __init__(self, console: Console, *, known: bool) -> None:
        self.port = console.port
        self.host = f"127.0.0.1:{console.port}"
        self.cookie = ""
        if known:
            address = urlsplit(console.url)
            status, headers, _ = self.get(f"{address.path}?{address.query}")
            assert (status, headers["location"]) == (303, "/")
            self.cookie = headers["set-cookie"].partition(";")[0]
            assert "HttpOnly" in headers["set-cookie"]
            assert "samesite=strict" in headers["set-cookie"].lower()

    def ask(self, method: str, path: str, body: str = "", **headers: str) -> Answer:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        sent = {"Host": self.host, "Cookie": self.cookie}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        line.request(method, path, body.encode() or None, sent)
        answer = line.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        text = "" if found.get("content-type", "").startswith("text/event") else answer.read()
        line.close()
        return answer.status, found, text.decode() if isinstance(text, bytes) else text

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, given: dict[str, str], **headers: str) -> Answer:
        usual = {"Content_Type": "application/x-www-form-urlencoded",
                 "Origin": f"http://{self.host}"}  # fmt: skip
        return self.ask("POST", path, urlencode(given), **{**usual, **headers})

    @property
    def csrf(self) -> str:
        return self.get("/control")[2].partition('name="csrf" value="')[2].partition('"')[0]


@pytest.fixture
def console(checkpoint: Path) -> Iterator[Console]:
    with Console(watch_checkpoint(checkpoint), control=True).start() as serving:
        yield serving


def test_strangers_see_nothing(console: Console) -> None:
    stranger = Visitor(console, known=False)
    for path in ("/", "/decisions", "/control", "/metrics", "/events", "/static/style.css", "/x"):
        status, headers, text = stranger.get(path)
        assert status == 403 and "trades" not in text
        assert headers["content-security-policy"].startswith("default-src 'none'")
    assert stranger.get("/?token=wrong")[0] == 403
    friend = Visitor(console, known=True)
    assert friend.get("/", Host="evil.example")[0] == 403
    assert friend.get("/")[0] == 200


def test_it_listens_on_this_machine_only(console: Console) -> None:
    with socket.socket() as other, pytest.raises(OSError):
        other.settimeout(2)
        other.connect((_address_of_this_host(), console.port))


def _address_of_this_host() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])


def test_pages_files_and_news(console: Console) -> None:
    friend = Visitor(console, known=True)
    for path in ("/", "/?span=all&processor=1", "/?span=x&processor=y", "/decisions",
                 "/processors", "/control"):  # fmt: skip
        status, headers, text = friend.get(path)
        assert status == 200 and "trades" in text, path
        assert headers["cache-control"] == "no-store"
    assert "--accent" in friend.get("/static/style.css")[2]
    for path in ("/static/server.py", "/static/..%2Fserver.py", "/nothing"):
        assert friend.get(path)[0] == 404
    assert friend.get("/events")[1]["content-type"].startswith("text/event-stream")
    status, headers, _ = friend.get("/join/5")
    assert status == 303 and headers["location"] == "/"


def test_a_plan_is_asked_for(console: Console, checkpoint: Path) -> None:
    friend = Visitor(console, known=True)
    requests = PlanRequests(checkpoint / "plait" / "join")
    plan = "(((trades quotes) news) ratings)"
    form = {"action": "preview", "plan": plan, "strategy": "auto", "csrf": friend.csrf}
    status, _, text = friend.post("/control", form)
    assert status == 200 and " CPU: " in text and not requests.waiting()
    status, headers, _ = friend.post("/control", form | {"action": "pin"})
    assert (status, headers["location"]) == (303, "/control")
    ((_, asked),) = requests.waiting()
    assert asked is not None and (asked.action, asked.plan) == ("pin", plan)
    assert friend.post("/control", form | {"action": "release"})[0] == 303
    assert len(requests.waiting()) == 2


def test_what_makes_no_sense_is_refused_in_words(console: Console, checkpoint: Path) -> None:
    friend = Visitor(console, known=True)
    form = {"action": "pin", "plan": "(a z)", "strategy": "auto", "csrf": friend.csrf}
    wrongs = [({}, "stream"), ({"plan": ""}, "no plan is given"),
              ({"strategy": "x"}, "no strategy"), ({"action": "stop"}, "asked for")]  # fmt: skip
    for wrong, said in wrongs:
        status, _, text = friend.post("/control", form | wrong)
        assert status == 400 and said in text, text
    assert not PlanRequests(checkpoint / "plait" / "join").waiting()


def test_forms_of_others_are_refused(console: Console, checkpoint: Path) -> None:
    friend, stranger = Visitor(console, known=True), Visitor(console, known=False)
    form = {"action": "release", "csrf": friend.csrf}
    assert stranger.post("/control", form)[0] == 403
    assert friend.post("/control", {"action": "release"})[0] == 403
    assert friend.post("/control", form | {"csrf": "x"})[0] == 403
    assert friend.post("/control", form, Origin="http://evil.example")[0] == 403
    assert friend.post("/control", form, Sec_Fetch_Site="cross-site")[0] == 403
    assert friend.post("/control", form | {"plan": "x" * 100_000})[0] == 413
    assert not PlanRequests(checkpoint / "plait" / "join").waiting()


def test_without_control_nothing_can_be_asked_for(checkpoint: Path) -> None:
    with Console(watch_checkpoint(checkpoint)).start() as console:
        friend = Visitor(console, known=True)
        assert friend.get("/control")[0] == 403
        assert friend.post("/control", {"action": "release"})[0] == 403
        assert not PlanRequests(checkpoint / "plait" / "join").waiting()
