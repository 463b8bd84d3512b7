"""What stands between the network and the workbench: token, Host, Origin, limits, headers of every answer.

A page of another site must not be able to use the server through the user's browser: not by a name that
points to this machine (DNS rebinding, refused by the Host check), not by a form or script of its own (refused
by the Origin check and the cookie's SameSite), and not by guessing the port (refused without a token).
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import html
import json
import secrets
import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote_to_bytes, urlsplit

from starlette.exceptions import HTTPException

from bilex_workbench.interface import CONTROL

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEALTH = "/api/health"
LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_HEADER_BYTES = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
_BODY_LIMIT = 1 << 20
_BODY_LIMITS = {"/api/publish/import": 64 << 20, "/api/setup/uploads/": 8 << 20}
_SLOW = ("/api/job/events", "/api/publish/")
_FORM_LIMIT, _FORM_SECONDS = 4096, 5.0
_PART_SECONDS = 20.0  # until the next part of a body must have come
_FEWEST_BYTES = 50_000  # of a body per second, once it has taken as long as a request may
_CODE_SECONDS = 120.0
_SAFE_LENGTH = 20  # of a token that nobody guesses, however often
_MOST_WRONG, _WRONG_SECONDS, _MOST_PEERS = 20, 60.0, 1_000


@dataclass(frozen=True)
class AccessPolicy:
    """Who may come in."""

    token: str
    hosts: frozenset[str] = LOCAL
    seconds: float = 60.0

    @property
    def cookie(self) -> str:
        """What the page carries instead of the token: it proves the token and does not contain it."""
        return hmac.new(self.token.encode(), b"bilex workbench cookie", hashlib.sha256).hexdigest()

    def admits_token(self, given: str) -> bool:
        """Whether this is the token, compared in constant time."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def admits_cookie(self, given: str) -> bool:
        """Whether this is the cookie that the token sets."""
        return hmac.compare_digest(given.encode(), self.cookie.encode())


class _Guesses:
    """Counts wrong tokens, so that a short password cannot be found by trying."""

    def __init__(self) -> None:
        self._wrong: dict[str, tuple[int, float]] = {}

    def check(self, peer: str) -> None:
        """Refuse a peer that gave too many wrong tokens."""
        count, since = self._wrong.get(peer, (0, 0.0))
        if count >= _MOST_WRONG and time.monotonic() - since < _WRONG_SECONDS:
            raise AccessDeniedError(429, "Too many wrong tokens came from there; try again in a minute.")

    def note(self, peer: str) -> None:
        """A wrong token came."""
        count, since = self._wrong.pop(peer, (0, time.monotonic()))
        if time.monotonic() - since > _WRONG_SECONDS:
            count, since = 0, time.monotonic()
        self._wrong[peer] = count + 1, since
        if len(self._wrong) > _MOST_PEERS:
            del self._wrong[next(iter(self._wrong))]


class AccessDeniedError(Exception):
    """A request that is answered here."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class Safety:
    """The middleware that applies a `AccessPolicy` to every request."""

    def __init__(
        self, app: ASGIApp, policy: AccessPolicy, unhurried: Callable[[str], bool] = lambda path: False
    ) -> None:
        self._app, self._policy, self._unhurried = app, policy, unhurried
        self._codes: dict[str, float] = {}
        self._guesses = _Guesses()

    def one_time_code(self) -> str:
        """A code that is exchanged for the cookie once, within two minutes, by `/?code=CODE`.

        The command line of a browser can be read by other users of the machine; what stands in it must be
        worth nothing a moment later.
        """
        code = secrets.token_urlsafe(24)
        self._codes[code] = time.monotonic() + _CODE_SECONDS
        return code

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, refuse, or let in."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        sender = _WithHeaders(send)
        try:
            self._check_site(headers, scope)
            if await self._logged_in(scope, headers, receive, sender):
                return
            self._check_token(scope, headers)
            limit = _body_limit(scope["path"])
            if _length(headers) > limit:
                raise AccessDeniedError(413, f"The body is larger than {limit:,} bytes.")
            deadline = self._policy.seconds + _length(headers) / _FEWEST_BYTES
            await self._serve(scope, _limited(receive, limit, deadline), sender)
        except AccessDeniedError as refused:
            if not sender.started:
                await self._refuse(scope, headers, sender, refused)

    async def _serve(self, scope: Scope, receive: Receive, sender: _WithHeaders) -> None:
        # What changes something is not cut off: the answer must say what was done.
        path = scope["path"]
        slow = scope["method"] not in ("GET", "HEAD") or path.startswith(_SLOW) or self._unhurried(path)
        try:
            async with asyncio.timeout(None if slow else self._policy.seconds):
                await self._app(scope, receive, sender)
        except TimeoutError as error:
            raise AccessDeniedError(504, "The request took too long; ask for less.") from error

    def _check_site(self, headers: dict[str, str], scope: Scope) -> None:
        """Refuse a name that is not ours, and requests that a page of another site makes."""
        if "content-length" in headers and "transfer-encoding" in headers:
            raise AccessDeniedError(400, "A body has a Content-Length or a Transfer-Encoding, not both.")
        if CONTROL.search(_decoded(scope)):
            raise AccessDeniedError(400, "The address has control characters in it.")
        host = headers.get("host", "")
        if self._policy.hosts and _name_of(host) not in self._policy.hosts:
            raise AccessDeniedError(403, "This server does not go by that host name.")
        origin = headers.get("origin")
        if origin is not None and _site_of(origin) != host:
            raise AccessDeniedError(403, "Requests from pages of other sites are refused.")
        safe_link = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not safe_link:
            raise AccessDeniedError(403, "Requests from pages of other sites are refused.")

    async def _logged_in(
        self, scope: Scope, headers: dict[str, str], receive: Receive, send: _WithHeaders
    ) -> bool:
        """Answer the printed link, or the form of the page that asks for the token, with a cookie."""
        if scope["path"] != "/":
            return False
        if scope["method"] == "GET":
            query = parse_qs(scope["query_string"].decode("latin-1"))
            given, code = query.get("token", [""])[0], query.get("code", [""])[0]
            if not given and not code:
                return False
        elif scope["method"] == "POST":
            body = await _whole(_limited(receive, _FORM_LIMIT, _FORM_SECONDS))
            given, code = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0], ""
        else:
            return False
        if not self._redeemed(code) and not self._admits(scope, given):
            raise AccessDeniedError(
                401, "That token is not right; use the link that 'bilex serve' printed last."
            )
        cookie = f"{_cookie_name(headers)}={self._policy.cookie}; Path=/; HttpOnly; SameSite=Strict"
        answer = [(b"location", b"/"), (b"set-cookie", cookie.encode())]
        await send({"type": "http.response.start", "status": 303, "headers": answer})
        await send({"type": "http.response.body", "body": b""})
        return True

    def _check_token(self, scope: Scope, headers: dict[str, str]) -> None:
        """Refuse a request without token or cookie."""
        if scope["path"] == HEALTH and scope["method"] in ("GET", "HEAD"):
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if self._policy.admits_cookie(_cookie(headers)):
            return
        if scheme.lower() == "bearer" and self._admits(scope, given.strip()):
            return
        raise AccessDeniedError(
            401, "A token is needed; use the link that 'bilex serve' printed, or a bearer token."
        )

    def _admits(self, scope: Scope, given: str) -> bool:
        """Whether this is the token; short ones may be tried a few times per minute only."""
        guessable = bool(given) and len(self._policy.token) < _SAFE_LENGTH
        peer = str((scope.get("client") or ("",))[0])
        if guessable:
            self._guesses.check(peer)
        right = self._policy.admits_token(given)
        if guessable and not right:
            self._guesses.note(peer)
        return right

    def _redeemed(self, code: str) -> bool:
        """Whether this is a one-time code; it is none afterwards."""
        return time.monotonic() < self._codes.pop(code, 0.0)

    async def _refuse(
        self, scope: Scope, headers: dict[str, str], send: _WithHeaders, refused: AccessDeniedError
    ) -> None:
        kind, body = "application/json", json.dumps({"detail": refused.sentence}).encode()
        if refused.status == 401 and "text/html" in headers.get("accept", "") and scope["path"] == "/":
            kind, body = "text/html; charset=utf-8", _form(refused.sentence)
        answer = [(b"content-type", kind.encode())]
        if refused.status == 401:
            answer.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": refused.status, "headers": answer})
        await send({"type": "http.response.body", "body": body})


class _WithHeaders:
    """Sends what it is given, with the headers that every answer has."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            present = {name.lower() for name, _ in message.get("headers", [])}
            more = [header for header in _HEADER_BYTES if header[0] not in present]
            message = {**message, "headers": [*message.get("headers", []), *more]}
        await self._send(message)


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _decoded(scope: Scope) -> str:
    """The path and the query as text."""
    query = unquote_to_bytes(scope["query_string"]).decode("utf-8", "replace")
    return f"{scope['path']}?{query}"


def _length(headers: dict[str, str]) -> int:
    given = headers.get("content-length", "0")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 20 else 0


def _site_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _name_of(host: str) -> str:
    """A Host header without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _cookie_name(headers: dict[str, str]) -> str:
    """Cookies know no ports, so that two servers on one machine need two names."""
    try:
        port = urlsplit(f"//{headers.get('host', '')}").port
    except ValueError:
        port = None
    return f"bilex_{port or 80}"


def _cookie(headers: dict[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(_cookie_name(headers))
    except CookieError:
        return ""
    return found.value if found else ""


def _body_limit(path: str) -> int:
    return next((limit for prefix, limit in _BODY_LIMITS.items() if path.startswith(prefix)), _BODY_LIMIT)


def _limited(receive: Receive, limit: int, seconds: float) -> Receive:
    """A body that may neither grow beyond its limit, whatever its Content-Length said, nor take too long."""
    received, whole = 0, False
    end = time.monotonic() + seconds

    async def next_part() -> MutableMapping[str, Any]:
        nonlocal received, whole
        if whole:  # what comes now is that the client has gone
            return await receive()
        try:
            async with asyncio.timeout(max(0.0, min(_PART_SECONDS, end - time.monotonic()))):
                message = await receive()
        except TimeoutError as error:
            raise HTTPException(408, "The body came too slowly; nothing was done") from error
        received += len(message.get("body", b""))
        whole = not message.get("more_body")
        if received > limit:
            raise HTTPException(413, f"The body is larger than {limit:,} bytes")
        return message

    return next_part


async def _whole(receive: Receive) -> bytes:
    body = b""
    try:
        while True:
            message = await receive()
            body += bytes(message.get("body", b""))
            if not message.get("more_body"):
                return body
    except HTTPException as error:
        raise AccessDeniedError(error.status_code, f"{error.detail}.") from error


def _form(sentence: str) -> bytes:
    """A page without script that asks for the token or password."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>bilex workbench</title>'
        f"<main><h1>bilex workbench</h1><p>{html.escape(sentence)}</p>"
        '<form method="post" action="/"><label>Token or password '
        '<input type="password" name="token" autocomplete="current-password" autofocus></label> '
        "<button>Open</button></form></main></html>"
    ).encode()
