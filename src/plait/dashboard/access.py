"""Decide who may see the console and who may request plans, by the head of a request.

*What is defended against.* Other users of the machine and programs without the token; pages of
other sites in the user's browser, which can make it send requests to this machine, also under a
name that resolves to it (DNS rebinding); forms on such pages; other servers on this machine, to
which a browser would send the cookies of 127.0.0.1, whatever their port.

*How.* Every request must name this machine in its one Host header. The token comes once, in the
address that is printed. The answer leads to the home of the console, a path that nobody can guess,
and sets a cookie for that path alone (SameSite=Strict, HttpOnly). Pages need both: who receives a
cookie does not know the path, and who knows the path has no cookie. A browser sends the cookie to
no other path, hence to no other server, and tells no other origin the path (Referrer-Policy).
Programs send the token as `Authorization: Bearer`. Path and cookie are MACs under the token, so
neither tells it. What changes something must be a POST of this origin, by Origin and
Sec-Fetch-Site, and bring a value that only a page of this console has.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Without any, browsers send forms with an unknown origin.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Sent with every answer."""
_HERE = ("127.0.0.1", "localhost", "::1")

Headers = Sequence[tuple[str, str]]
"""Names, some perhaps more than once, and values."""
Verdict = Literal["welcome", "enter", "wrong host", "no token", "other origin"]
"""`enter`: the token is in the address, and becomes a cookie."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The token of one console, and what follows from it."""

    token: str
    port: int = 0

    @classmethod
    def new(cls, port: int = 0) -> Keys:
        """Those of a console that is started."""
        return cls(secrets.token_urlsafe(32), port)

    @property
    def cookie(self) -> str:
        """The name of the cookie; cookies do not know ports."""
        return f"plait-console-{self.port}"

    @property
    def home(self) -> str:
        """The path that all pages are below; it ends in a slash."""
        return f"/{self._mac('home')[:32]}/"

    @property
    def session(self) -> str:
        """The value of the cookie."""
        return self._mac("session")

    @property
    def csrf(self) -> str:
        """What a form must bring along."""
        return self._mac("form")

    def is_token(self, given: str) -> bool:
        """Whether that is the token."""
        return _same(given, self.token)

    def is_session(self, given: str) -> bool:
        """Whether that is the value of the cookie."""
        return _same(given, self.session)

    def is_form(self, given: str) -> bool:
        """Whether a form comes from a page of this console."""
        return _same(given, self.csrf)

    def _mac(self, purpose: str) -> str:
        return hmac.new(self.token.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def _same(given: str, expected: str) -> bool:
    # Texts may have halves of characters, which have no encoding.
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


def judge(
    keys: Keys,
    method: str,
    path: str,
    headers: Headers,
    cookies: Mapping[str, str],
    token: str = "",
) -> Verdict:
    """Whether to answer a request; the names of headers are in lower case.

    >>> keys = Keys("secret")
    >>> judge(keys, "GET", "/", [("host", "evil.example:8000")], {}, "secret")
    'wrong host'
    >>> judge(keys, "GET", "/", [("host", "localhost:8000")], {}, "secret")
    'enter'
    >>> judge(keys, "GET", "/", [("host", "localhost:8000")], {keys.cookie: keys.session})
    'no token'
    >>> judge(keys, "GET", keys.home, [("host", "localhost:8000")], {keys.cookie: keys.session})
    'welcome'
    """
    hosts = _values(headers, "host")
    if len(hosts) != 1 or not is_here(hosts[0]):
        return "wrong host"
    bearer = "".join(_values(headers, "authorization"))
    at_home = path.startswith(keys.home) and keys.is_session(cookies.get(keys.cookie, ""))
    if not at_home and not (
        bearer.startswith("Bearer ") and keys.is_token(bearer.removeprefix("Bearer "))
    ):
        return "enter" if method == "GET" and token and keys.is_token(token) else "no token"
    if method not in ("GET", "HEAD") and not _same_origin(headers, hosts[0]):
        return "other origin"
    return "welcome"


def is_here(host: str) -> bool:
    """Whether a Host header names this machine.

    >>> is_here("localhost:9108"), is_here("evil.example:9108")
    (True, False)
    """
    return _name(host) in _HERE


def _name(host: str) -> str:
    """The name in a Host header, without the port.

    >>> _name("[::1]:8000"), _name("localhost"), _name("a@localhost:80"), _name(":::")
    ('::1', 'localhost', '', '')
    """
    try:
        found = urlsplit(f"//{host}")
        if found.username is not None or found.path or found.query or found.fragment:
            return ""
        _ = found.port
        return found.hostname or ""
    except ValueError:
        return ""


def _same_origin(headers: Headers, host: str) -> bool:
    """Whether a page of this console has sent the request."""
    site = _values(headers, "sec-fetch-site")
    return _values(headers, "origin") == [f"http://{host}"] and site in ([], ["same-origin"])


def _values(headers: Headers, name: str) -> list[str]:
    return [value for found, value in headers if found == name]
