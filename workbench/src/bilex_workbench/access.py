"""The access policy: token, Host, Origin, limits, and the headers of every response.

A page of another site must not be able to use the server through the user's browser: not by a name that
points to this machine (DNS rebinding, refused by the Host check), not by a form or script (refused by the
Origin check and the cookie's SameSite), and not by guessing the port (refused without a token).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import html
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qs, unquote_to_bytes, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from bilex.lexicon.entries import FORBIDDEN

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEALTH = "/api/health"
LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' "
    "data: blob:; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_BODY_LIMIT = 1 << 20
_BODY_LIMITS = {"/api/publish/import": 64 << 20, "/api/setup/uploads/": 8 << 20}
_UNLIMITED = ("/api/job/events", "/api/publish/")  # paths that may take long
_FORM_LIMIT, _FORM_SECONDS = 4096, 5.0
_PART_SECONDS = 20.0  # until the next part of a body must have come
_FEWEST_BYTES = 50_000  # of a body per second, once it has taken as long as a request may
_CODE_SECONDS = 120.0
_SAFE_LENGTH = 20  # of a token that nobody guesses, however often
_MOST_WRONG, _WRONG_SECONDS, _MOST_PEERS = 20, 60.0, 1_000
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
    """The token, the host names of the server, and the time that a request may take."""

    token: str
    hosts: frozenset[str] = LOCAL
    seconds: float = 60.0

    @property
    def cookie(self) -> str:
        """What the page carries instead of the token: it proves the token and does not contain it."""
        return hmac.new(self.token.encode(), b"bilex workbench cookie", hashlib.sha256).hexdigest()


class AccessMiddleware:
    """Applies an `AccessPolicy` to every request; `waits` says whether a path may take longer now."""

    def __init__(
        self, app: ASGIApp, policy: AccessPolicy, waits: Callable[[str], bool] = lambda path: False
    ) -> None:
        self._app, self._policy, self._waits = app, policy, waits
        self._codes: dict[str, float] = {}
        self._wrong: dict[str, tuple[int, float]] = {}  # wrong tokens of each address, and since when

    def one_time_code(self) -> str:
        """A code that is exchanged for the cookie once, within two minutes, by `/?code=CODE`.

        Other users of the machine can read the command line of a browser; a code in it is worthless soon.
        """
        code = secrets.token_urlsafe(24)
        self._codes[code] = time.monotonic() + _CODE_SECONDS
        return code

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, refuse it, or log in."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        request = Request(scope, _limited(receive, _FORM_LIMIT, _FORM_SECONDS))
        try:
            self._check_site(request)
            response = await self._log_in(request)
            if response is None:
                self._check_token(request)
                await self._serve(request, receive, send_with_headers)
                return
        except ClientDisconnect:
            return
        except HTTPException as refused:
            if started:
                return
            response = _refusal(request, refused)
        await response(scope, receive, send_with_headers)

    async def _serve(self, request: Request, receive: Receive, send: Send) -> None:
        path, given = request.scope["path"], request.headers.get("content-length", "")
        length = int(given) if given.isascii() and given.isdigit() and len(given) < 20 else 0
        limit = next((most for start, most in _BODY_LIMITS.items() if path.startswith(start)), _BODY_LIMIT)
        if length > limit:
            raise HTTPException(413, f"The body is larger than {limit:,} bytes")
        body = _limited(receive, limit, self._policy.seconds + length / _FEWEST_BYTES)
        # Requests that change something are not cut off: the response must say what was done.
        slow = request.method not in ("GET", "HEAD") or path.startswith(_UNLIMITED) or self._waits(path)
        try:
            async with asyncio.timeout(None if slow else self._policy.seconds):
                await self._app(request.scope, body, send)
        except TimeoutError as error:
            raise HTTPException(504, "The request took too long; request less") from error

    def _check_site(self, request: Request) -> None:
        """Refuse other host names, and requests of pages of other sites."""
        headers = request.headers
        if "content-length" in headers and "transfer-encoding" in headers:
            raise HTTPException(400, "A body has a Content-Length or a Transfer-Encoding, not both")
        query = unquote_to_bytes(request.scope["query_string"]).decode("utf-8", "replace")
        if FORBIDDEN.search(request.scope["path"] + query):
            raise HTTPException(400, "The address contains control characters")
        host = headers.get("host", "")
        if self._policy.hosts and _split(f"//{host}").hostname not in self._policy.hosts:
            raise HTTPException(403, "This server does not have that host name")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        safe_link = request.method == "GET" and headers.get("sec-fetch-mode") == "navigate"
        if (origin is not None and _split(origin).netloc != host) or (
            site in ("cross-site", "same-site") and not safe_link
        ):
            raise HTTPException(403, "Requests from pages of other sites are refused")

    async def _log_in(self, request: Request) -> Response | None:
        """Answer the printed link, or the form for the token, with a cookie; None for other requests."""
        if request.scope["path"] != "/" or request.method not in ("GET", "POST"):
            return None
        given, code = (request.query_params.get(name, "") for name in ("token", "code"))
        if request.method == "POST":
            body = await request.body()
            given, code = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0], ""
        elif not given and not code:
            return None
        redeemed = time.monotonic() < self._codes.pop(code, 0.0)
        if not redeemed and not self._admits(request, given):
            raise HTTPException(401, "The token is wrong; use the link that 'bilex serve' printed last")
        cookie = f"{_cookie_name(request)}={self._policy.cookie}; Path=/; HttpOnly; SameSite=Strict"
        return RedirectResponse("/", 303, {"Set-Cookie": cookie})

    def _check_token(self, request: Request) -> None:
        """Refuse a request without token or cookie."""
        if request.scope["path"] == HEALTH and request.method in ("GET", "HEAD"):
            return
        if _same(request.cookies.get(_cookie_name(request), ""), self._policy.cookie):
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self._admits(request, given.strip()):
            message = "A token is needed; use the link that 'bilex serve' printed, or a bearer token"
            raise HTTPException(401, message)

    def _admits(self, request: Request, given: str) -> bool:
        """Whether this is the token; an address may try a short one only a few times per minute."""
        right = _same(given, self._policy.token)
        if not given or len(self._policy.token) >= _SAFE_LENGTH:
            return right
        peer, now = request.client.host if request.client else "", time.monotonic()
        count, since = self._wrong.pop(peer, (0, now))
        if now - since > _WRONG_SECONDS:
            count, since = 0, now
        if count or not right:
            self._wrong[peer] = min(_MOST_WRONG, count + (not right)), since
        if count >= _MOST_WRONG:
            raise HTTPException(429, "Too many wrong tokens came from this address; try again in a minute")
        if len(self._wrong) > _MOST_PEERS:
            del self._wrong[next(iter(self._wrong))]
        return right


def _refusal(request: Request, refused: HTTPException) -> Response:
    sentence, headers = f"{refused.detail}.", {}
    if refused.status_code == 401:
        headers["WWW-Authenticate"] = "Bearer"
        if "text/html" in request.headers.get("accept", "") and request.scope["path"] == "/":
            return HTMLResponse(_FORM.format(html.escape(sentence)), 401, headers)
    return JSONResponse({"detail": sentence}, refused.status_code, headers)


def _same(given: str, expected: str) -> bool:
    """Whether two texts are equal, compared in constant time."""
    return hmac.compare_digest(given.encode(), expected.encode())


def _split(address: str) -> SplitResult:
    with contextlib.suppress(ValueError):
        return urlsplit(address)
    return urlsplit("")


def _cookie_name(request: Request) -> str:
    """A name with the port: browsers send cookies to all ports of a host."""
    port = None
    with contextlib.suppress(ValueError):
        port = _split(f"//{request.headers.get('host', '')}").port
    return f"bilex_{port or 80}"


def _limited(receive: Receive, limit: int, seconds: float) -> Receive:
    """A body that may neither grow beyond its limit, whatever its Content-Length is, nor take too long."""
    received, whole, end = 0, False, time.monotonic() + seconds

    async def next_part() -> Message:
        nonlocal received, whole
        if whole:  # the next message says that the client has gone
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
