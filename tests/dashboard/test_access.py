"""Who is let in, and who is not."""

from __future__ import annotations

import pytest

from plait.dashboard.access import POLICY, Keys, Verdict, judge

KEYS = Keys("the token", 8000)
HERE = {"host": "127.0.0.1:8000"}
COOKIE = {KEYS.cookie: KEYS.session}
POST = HERE | {"origin": "http://127.0.0.1:8000"}


@pytest.mark.parametrize(
    ("method", "headers", "cookies", "token", "verdict"),
    [
        ("GET", HERE, {}, "", "no token"),
        ("GET", HERE, {}, "wrong", "no token"),
        ("GET", HERE, {}, "the token", "enter"),
        ("POST", POST, {}, "the token", "no token"),
        ("GET", HERE, COOKIE, "", "welcome"),
        ("GET", HERE, {KEYS.cookie: "the token"}, "", "no token"),
        ("GET", HERE, {KEYS.cookie: KEYS.csrf}, "", "no token"),
        ("GET", HERE, {"plait-console-8001": KEYS.session}, "", "no token"),
        ("GET", HERE | {"authorization": "Bearer the token"}, {}, "", "welcome"),
        ("GET", HERE | {"authorization": "Bearer "}, {}, "", "no token"),
        ("GET", HERE | {"authorization": "Basic the token"}, {}, "", "no token"),
        # A tunnel changes the port, and that is all right.
        ("GET", {"host": "localhost:9999"}, COOKIE, "", "welcome"),
        ("GET", {"host": "[::1]:8000"}, COOKIE, "", "welcome"),
        # A name that resolves to this machine is not this machine's.
        ("GET", {"host": "evil.example:8000"}, COOKIE, "the token", "wrong host"),
        ("GET", {"host": "127.0.0.1.evil.example"}, COOKIE, "", "wrong host"),
        ("GET", {"host": "localhost@evil.example"}, COOKIE, "", "wrong host"),
        ("GET", {"host": "evil.example/localhost"}, COOKIE, "", "wrong host"),
        ("GET", {"host": "localhost:x"}, COOKIE, "", "wrong host"),
        ("GET", {}, COOKIE, "", "wrong host"),
        ("POST", POST, COOKIE, "", "welcome"),
        ("POST", HERE, COOKIE, "", "other origin"),
        ("POST", HERE | {"origin": "null"}, COOKIE, "", "other origin"),
        ("POST", HERE | {"origin": "http://evil.example"}, COOKIE, "", "other origin"),
        ("POST", HERE | {"origin": "http://127.0.0.1:8001"}, COOKIE, "", "other origin"),
        ("POST", POST | {"sec-fetch-site": "same-site"}, COOKIE, "", "other origin"),
        ("POST", POST | {"sec-fetch-site": "same-origin"}, COOKIE, "", "welcome"),
        ("PUT", HERE, COOKIE, "", "other origin"),
    ],
)
def test_who_may(
    method: str,
    headers: dict[str, str],
    cookies: dict[str, str],
    token: str,
    verdict: Verdict,
) -> None:
    assert judge(KEYS, method, KEYS.home, [*headers.items()], cookies, token) == verdict


@pytest.mark.parametrize(
    "path", ["/", "", "/control", "/x", f"/x{KEYS.home}", KEYS.home[:-1], "//"]
)
def test_the_cookie_counts_at_home_only(path: str) -> None:
    assert judge(KEYS, "GET", path, [*HERE.items()], COOKIE) == "no token"
    assert judge(KEYS, "POST", path, [*POST.items()], COOKIE) == "no token"
    assert judge(KEYS, "GET", path, [*HERE.items()], COOKIE, "the token") == "enter"
    bearer = [*HERE.items(), ("authorization", "Bearer the token")]
    assert judge(KEYS, "GET", path, bearer, {}) == "welcome"


@pytest.mark.parametrize("more", ["evil.example", "127.0.0.1:8000"])
def test_headers_that_come_twice_count_for_nothing(more: str) -> None:
    twice = [*POST.items(), ("host", more)]
    assert judge(KEYS, "POST", KEYS.home, twice, COOKIE) == "wrong host"
    twice = [*POST.items(), ("origin", f"http://{more}")]
    assert judge(KEYS, "POST", KEYS.home, twice, COOKIE) == "other origin"


def test_tokens_are_new_and_what_follows_from_them_differs() -> None:
    first, second = Keys.new(1), Keys.new(1)
    assert len(first.token) >= 40 and first.token != second.token
    assert len({first.token, first.session, first.csrf, first.home, second.session}) == 5
    assert first.is_form(first.csrf) and not first.is_form(first.session)
    assert not first.is_token("") and not first.is_session("é")
    assert not first.is_form("\ud800")


def test_the_policy_lets_pages_do_nothing_but_what_they_do() -> None:
    assert "default-src 'none'" in POLICY and "unsafe" not in POLICY and "http" not in POLICY
    assert "frame-ancestors 'none'" in POLICY and "form-action 'self'" in POLICY
