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
import secrets
import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qs, unquote_to_bytes, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

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


# A page without script that asks for the token or password.
_FORM = (
    '<!doctype html><html lang="en"><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width"><title>bilex workbench</title>'
    "<main><h1>bilex workbench</h1><p>{}</p>"
    '<form method="post" action="/"><label>Token or password '
    '<input type="password" name="token" autocomplete="current-password" autofocus></label> '
    "<button>Open</button></form></main></html>"
)


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


class _Guesses:
    """Counts wrong tokens, so that a short password cannot be found by trying."""

    def __init__(self) -> None:
        self._wrong: dict[str, tuple[int, float]] = {}

    def check(self, peer: str) -> None:
        """Refuse a peer that gave too many wrong tokens."""
        count, since = self._wrong.get(peer, (0, 0.0))
        if count >= _MOST_WRONG and time.monotonic() - since < _WRONG_SECONDS:
            raise HTTPException(429, "Too many wrong tokens came from there; try again in a minute")

    def note(self, peer: str) -> None:
        """A wrong token came."""
        count, since = self._wrong.pop(peer, (0, time.monotonic()))
        if time.monotonic() - since > _WRONG_SECONDS:
            count, since = 0, time.monotonic()
        self._wrong[peer] = count + 1, since
        if len(self._wrong) > _MOST_PEERS:
            del self._wrong[next(iter(self._wrong))]


class Safety:
    """The middleware that applies an `AccessPolicy` to every request."""

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
        sender = _WithHeaders(send)
        request = Request(scope, _limited(receive, _FORM_LIMIT, _FORM_SECONDS))
        try:
            self._check_site(request)
            response = await self._logged_in(request)
            if response is None:
                self._check_token(request)
                await self._serve(request, receive, sender)
                return
        except ClientDisconnect:
            return
        except HTTPException as refused:
            if sender.started:
                return
            response = _refusal(request, refused)
        await response(scope, receive, sender)

    async def _serve(self, request: Request, receive: Receive, sender: _WithHeaders) -> None:
        path, given = request.scope["path"], request.headers.get("content-length", "")
        length = int(given) if given.isascii() and given.isdigit() and len(given) < 20 else 0
        limits = (limit for prefix, limit in _BODY_LIMITS.items() if path.startswith(prefix))
        limit = next(limits, _BODY_LIMIT)
        if length > limit:
            raise HTTPException(413, f"The body is larger than {limit:,} bytes")
        body = _limited(receive, limit, self._policy.seconds + length / _FEWEST_BYTES)
        # What changes something is not cut off: the answer must say what was done.
        slow = request.method not in ("GET", "HEAD") or path.startswith(_SLOW) or self._unhurried(path)
        try:
            async with asyncio.timeout(None if slow else self._policy.seconds):
                await self._app(request.scope, body, sender)
        except TimeoutError as error:
            raise HTTPException(504, "The request took too long; ask for less") from error

    def _check_site(self, request: Request) -> None:
        """Refuse a name that is not ours, and requests that a page of another site makes."""
        headers = request.headers
        if "content-length" in headers and "transfer-encoding" in headers:
            raise HTTPException(400, "A body has a Content-Length or a Transfer-Encoding, not both")
        query = unquote_to_bytes(request.scope["query_string"]).decode("utf-8", "replace")
        if CONTROL.search(request.scope["path"] + query):
            raise HTTPException(400, "The address has control characters in it")
        host = headers.get("host", "")
        if self._policy.hosts and _split(f"//{host}").hostname not in self._policy.hosts:
            raise HTTPException(403, "This server does not go by that host name")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        safe_link = request.method == "GET" and headers.get("sec-fetch-mode") == "navigate"
        if (origin is not None and _split(origin).netloc != host) or (
            site in ("cross-site", "same-site") and not safe_link
        ):
            raise HTTPException(403, "Requests from pages of other sites are refused")

    async def _logged_in(self, request: Request) -> Response | None:
        """Answer the printed link, or the form of the page that asks for the token, with a cookie."""
        if request.scope["path"] != "/" or request.method not in ("GET", "POST"):
            return None
        if request.method == "GET":
            query = request.query_params
            given, code = query.get("token", ""), query.get("code", "")
            if not given and not code:
                return None
        else:
            body = await request.body()
            given, code = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0], ""
        redeemed = time.monotonic() < self._codes.pop(code, 0.0)  # a code is none afterwards
        if not redeemed and not self._admits(request, given):
            raise HTTPException(401, "That token is not right; use the link that 'bilex serve' printed last")
        cookie = f"{_cookie_name(request)}={self._policy.cookie}; Path=/; HttpOnly; SameSite=Strict"
        return RedirectResponse("/", 303, {"Set-Cookie": cookie})

    def _check_token(self, request: Request) -> None:
        """Refuse a request without token or cookie."""
        if request.scope["path"] == HEALTH and request.method in ("GET", "HEAD"):
            return
        if same(request.cookies.get(_cookie_name(request), ""), self._policy.cookie):
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self._admits(request, given.strip()):
            raise HTTPException(
                401, "A token is needed; use the link that 'bilex serve' printed, or a bearer token"
            )

    def _admits(self, request: Request, given: str) -> bool:
        """Whether this is the token; short ones may be tried a few times per minute only."""
        guessable = bool(given) and len(self._policy.token) < _SAFE_LENGTH
        peer = request.client.host if request.client else ""
        if guessable:
            self._guesses.check(peer)
        right = same(given, self._policy.token)
        if guessable and not right:
            self._guesses.note(peer)
        return right


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


def _refusal(request: Request, refused: HTTPException) -> Response:
    sentence, headers = f"{refused.detail}.", {}
    if refused.status_code == 401:
        headers["WWW-Authenticate"] = "Bearer"
        if "text/html" in request.headers.get("accept", "") and request.scope["path"] == "/":
            return HTMLResponse(_FORM.format(html.escape(sentence)), 401, headers)
    return JSONResponse({"detail": sentence}, refused.status_code, headers)


def same(given: str, wanted: str) -> bool:
    """Whether two texts are equal, compared in constant time."""
    return hmac.compare_digest(given.encode(), wanted.encode())


def _split(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def _cookie_name(request: Request) -> str:
    """Cookies know no ports, so that two servers on one machine need two names."""
    try:
        port = _split(f"//{request.headers.get('host', '')}").port
    except ValueError:
        port = None
    return f"bilex_{port or 80}"


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
