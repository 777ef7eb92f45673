"""Who may see the console and who may ask for plans: a pure function of a request's headers.

*What is defended against.* Other users of the machine and programs without the token; pages of
other sites in the user's browser, which can make it send requests to this machine, also under a
name that resolves to it (DNS rebinding); forms on such pages.

*How.* Every request must name this machine in its Host header. The token comes once, in the address
that is printed, and becomes a cookie that only this origin sends back (SameSite=Strict, HttpOnly);
programs send it as `Authorization: Bearer`. The cookie is a MAC under the token, not the token
itself, so it is worth nothing elsewhere. What changes something must be a POST of this origin, by
Origin and Sec-Fetch-Site, and bring a value that only a page of this console has.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
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
    def session(self) -> str:
        """The value of the cookie."""
        return self._mac("session")

    @property
    def csrf(self) -> str:
        """What a form must bring along."""
        return self._mac("form")

    def is_token(self, given: str) -> bool:
        """Whether that is the token."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def is_session(self, given: str) -> bool:
        """Whether that is the value of the cookie."""
        return hmac.compare_digest(given.encode(), self.session.encode())

    def is_form(self, given: str) -> bool:
        """Whether a form comes from a page of this console."""
        return hmac.compare_digest(given.encode(), self.csrf.encode())

    def _mac(self, purpose: str) -> str:
        return hmac.new(self.token.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def judge(
    keys: Keys,
    method: str,
    headers: Mapping[str, str],
    cookies: Mapping[str, str],
    token: str = "",
) -> Verdict:
    """Whether to answer a request; the names of headers are in lower case.

    >>> keys = Keys("secret")
    >>> judge(keys, "GET", {"host": "evil.example:8000"}, {}, "secret")
    'wrong host'
    >>> judge(keys, "GET", {"host": "localhost:8000"}, {})
    'no token'
    >>> judge(keys, "GET", {"host": "localhost:8000"}, {keys.cookie: keys.session})
    'welcome'
    """
    host = headers.get("host", "")
    if _name(host) not in _HERE:
        return "wrong host"
    bearer = headers.get("authorization", "")
    known = keys.is_session(cookies.get(keys.cookie, "")) or (
        bearer.startswith("Bearer ") and keys.is_token(bearer.removeprefix("Bearer "))
    )
    if not known:
        if method == "GET" and token and keys.is_token(token):
            return "enter"
        return "no token"
    if method not in ("GET", "HEAD") and not _same_origin(headers, host):
        return "other origin"
    return "welcome"


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


def _same_origin(headers: Mapping[str, str], host: str) -> bool:
    """Whether a page of this console has sent the request."""
    site = headers.get("sec-fetch-site")
    return headers.get("origin") == f"http://{host}" and site in (None, "same-origin")
