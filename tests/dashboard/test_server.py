"""The console over a socket: closed to strangers, open to who has the token."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from plait.dashboard.reading.watcher import watch_checkpoint
from plait.dashboard.server import Console
from plait.spark.control.plan_requests import PlanRequests

Answer = tuple[int, Mapping[str, str], str]


class Visitor:
    """Somebody who talks to a console; with `known`, at its home and by the cookie."""

    def __init__(self, console: Console, *, known: bool) -> None:
        self.port = console.port
        self.host = f"127.0.0.1:{console.port}"
        self.cookie, self.home = "", ""
        if known:
            address = urlsplit(console.url)
            status, headers, _ = self.get(f"{address.path}?{address.query}")
            home = headers["location"]
            assert status == 303 and re.fullmatch("/[0-9a-f]{32}/", home)
            self.cookie, self.home = headers["set-cookie"].partition(";")[0], home.rstrip("/")
            assert "HttpOnly" in headers["set-cookie"] and f"Path={home};" in headers["set-cookie"]
            assert "samesite=strict" in headers["set-cookie"].lower()

    def ask(self, method: str, path: str, body: str = "", **headers: str) -> Answer:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        sent = {"Host": self.host, "Cookie": self.cookie}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        line.request(method, self.home + path, body.encode() or None, sent)
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
    assert status == 303 and headers["location"] == "../"
    assert f"Path={friend.home}/;" in headers["set-cookie"]


def test_a_plan_is_asked_for(console: Console, checkpoint: Path) -> None:
    friend = Visitor(console, known=True)
    requests = PlanRequests(checkpoint / "plait" / "join")
    plan = "(((trades quotes) news) ratings)"
    form = {"action": "preview", "plan": plan, "strategy": "auto", "csrf": friend.csrf}
    status, _, text = friend.post("/control", form)
    assert status == 200 and " CPU: " in text and not requests.waiting()
    status, headers, _ = friend.post("/control", form | {"action": "pin"})
    assert (status, headers["location"]) == (303, "control")
    ((_, asked),) = requests.waiting()
    assert asked is not None and (asked.action, asked.plan) == ("pin", plan)
    assert friend.post("/control", form | {"action": "release"})[0] == 303
    assert len(requests.waiting()) == 2


def test_what_makes_no_sense_is_refused_in_words(console: Console, checkpoint: Path) -> None:
    friend = Visitor(console, known=True)
    form = {"action": "pin", "plan": "(a z)", "strategy": "auto", "csrf": friend.csrf}
    wrongs = [({}, "stream"), ({"plan": ""}, "no plan is given"),
              ({"strategy": "x"}, "known: moving"),
              ({"action": "stop"}, "action cannot be")]  # fmt: skip
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


def test_head_asks_for_nothing(console: Console, checkpoint: Path) -> None:
    friend = Visitor(console, known=True)
    form = urlencode({"action": "release", "csrf": friend.csrf})
    for origin in ("http://evil.example", f"http://{friend.host}"):
        status, _, text = friend.ask("HEAD", "/control", form, Origin=origin)
        assert (status, text) == (200, "")
    assert friend.ask("HEAD", "/events")[0] == 200
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "MKCOL"):
        assert friend.ask(method, "/control", form)[0] == 403
        assert friend.ask(method, "/control", form, Origin=f"http://{friend.host}")[0] == 405
    assert not PlanRequests(checkpoint / "plait" / "join").waiting()


def test_neither_the_cookie_nor_the_path_alone_opens_anything(
    console: Console, checkpoint: Path
) -> None:
    friend = Visitor(console, known=True)
    form = {"action": "release", "csrf": friend.csrf}
    cookie, home = friend.cookie, friend.home
    # A server on another port of this machine would get cookies whose path is not our own.
    friend.home = ""
    for path in ("/", "/decisions", "/control", "/metrics", f"/x{home}/", f"{home}x/", home):
        assert friend.get(path)[0] == 403, path
    assert friend.post("/control", form)[0] == 403
    friend.home, friend.cookie = home, ""
    assert friend.get("/")[0] == friend.post("/control", form)[0] == 403
    friend.cookie = cookie.replace(str(friend.port), str(friend.port + 1))
    assert friend.get("/")[0] == 403
    assert not PlanRequests(checkpoint / "plait" / "join").waiting()


def test_programs_bring_the_token_in_a_header(console: Console) -> None:
    program = Visitor(console, known=False)
    token = console.url.partition("token=")[2]
    status, _, text = program.get("/metrics", Authorization=f"Bearer {token}")
    assert status == 200 and "plait_batch" in text


def test_no_redirect_leads_elsewhere(console: Console) -> None:
    stranger = Visitor(console, known=False)
    query = urlsplit(console.url).query
    for path in ("//evil.example/", "/\\evil.example/", "//evil.example/%2e%2e",
                 "/%2F/evil.example/", "/decisions/", "/decisions", "///"):  # fmt: skip
        status, headers, _ = stranger.get(f"{path}?{query}")
        assert status == 303 and re.fullmatch("/[0-9a-f]{32}/", headers["location"]), path
    friend = Visitor(console, known=True)
    for path in ("//evil.example/", "/decisions/", "/join/1/", "//"):
        assert friend.get(path)[0] == 404, path


def test_numbers_of_any_length_choose_a_join(console: Console) -> None:
    friend = Visitor(console, known=True)
    for digits in ("9" * 5000, "-1", "٣", "1e5", "0x1", ""):
        cookie = f"{friend.cookie}; plait-join={digits}".encode().decode("latin-1")
        assert friend.get("/", Cookie=cookie)[0] == 200
    assert friend.get(f"/join/{'9' * 5000}")[0] == 303
    assert friend.get(f"/?span={'9' * 5000}&processor={'9' * 5000}")[0] == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1", b"POST /control HTTP/1.1\r\nContent-Length: 9\r\n"
     b"Host: 127.0.0.1\r\n\r\nx"],
)  # fmt: skip
def test_who_sends_half_a_request_is_not_waited_for(
    console: Console, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr("plait.dashboard.server._PATIENCE", 1.0)
    with socket.create_connection(("127.0.0.1", console.port), timeout=15) as line:
        line.sendall(sent)
        while line.recv(4096):
            pass  # until it is closed
    assert Visitor(console, known=True).get("/")[0] == 200


@pytest.mark.slow
def test_half_a_form_is_not_waited_for(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.dashboard.server._PATIENCE", 1.0)
    friend = Visitor(console, known=True)
    head = {"Host": friend.host, "Origin": f"http://{friend.host}", "Cookie": friend.cookie,
            "Content-Length": "100"}  # fmt: skip
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    with socket.create_connection(("127.0.0.1", console.port), timeout=15) as line:
        line.sendall(f"POST {friend.home}/control HTTP/1.1\r\n{lines}\r\ncsrf=".encode())
        assert line.recv(4096).startswith(b"HTTP/1.1 408 ")
