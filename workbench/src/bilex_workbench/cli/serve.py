"""`bilex serve`: the workbench in the browser."""

from __future__ import annotations

import secrets
import socket
import sys
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

from click import IntRange

from bilex.cli import options as opt
from bilex.core.errors import BilexError

_SHORTEST_TOKEN = 8
_FIRST_PORT, _PORTS = 8765, 50
_BROWSER_AFTER = 0.5
# How long a thread may keep others from running: searches and requests alternate many times per second.
_SWITCH_SECONDS = 0.0005
_CORPUS = {"type": str, "nargs": 2, "metavar": "SOURCE TARGET"}


@opt.as_command(
    "bilex serve en-fi",
    "bilex serve en-fi --port 9000 --no-browser",
    "bilex serve en-fi --corpus europarl.en.gz europarl.fi.gz",
    "bilex serve --folder ~/vectors                        (no model yet: make one in the browser)",
    "bilex serve en-fi --host 0.0.0.0 --password-file secret.txt",
)
def command(
    model: str | None = None,
    *,
    host: str = "127.0.0.1",
    port: Annotated[int | None, {"type": IntRange(0, 65535)}] = None,
    token: str | None = None,
    password_file: str | None = None,
    folder: str | None = None,
    corpus: Annotated[tuple[str, str] | None, _CORPUS] = None,
    earlier_models: Annotated[int, {"type": IntRange(0, 100)}] = 5,
    no_browser: bool = False,
) -> None:
    """Review, correct, retrain and publish the dictionary of a MODEL in the browser.

    Without MODEL the page offers the packaged sample and a form for files of your own. What people decide
    is kept in MODEL.review.sqlite beside the model. The server listens on this machine only; any other
    --host needs --token or --password-file.

    Input:
        --corpus: Text to show examples from: files, packed or not, or folders; '-' for none.
            Indexed once.
        --folder FOLDER: Files for a first fit may be chosen from this folder.
    Access:
        --host: The address to listen on.
        --port: The port.  [default: 8765 or the next free]
        --token: What requests must carry; a random one by default.
        --password-file FILE: A file whose first line is the token.
        --no-browser: Only print the link.
    Advanced:
        --earlier-models: How many earlier models are kept when a retrained one replaces the model.
    """
    from bilex.cli.console import progress
    from bilex_workbench.access import LOCAL, AccessPolicy
    from bilex_workbench.examples import opened_corpus
    from bilex_workbench.server import application, run
    from bilex_workbench.workbench import Settings, Workbench

    local = host in LOCAL
    secret = _secret(token, password_file)
    if secret is None and not local:
        raise BilexError(f"--host {host} lets other machines in; give --token or --password-file as well.")
    secret = secrets.token_urlsafe(24) if secret is None else secret
    allowed = Path(folder).expanduser().resolve() if folder is not None else None
    if allowed is not None and not allowed.is_dir():
        raise BilexError(f"{folder}: is no folder; name one that holds the vector files.")
    sys.setswitchinterval(_SWITCH_SECONDS)
    settings = Settings(folder=allowed, work=allowed or Path.cwd(), earlier=earlier_models)
    bench = Workbench(settings, Path(model) if model else None)
    try:
        if model is not None:
            source, target = (None if name == "-" else name for name in corpus or ("-", "-"))
            bench.corpus = opened_corpus(model, source, target, progress())
        listener = listening(host, port)
        number = listener.getsockname()[1]
        app = application(bench, AccessPolicy(secret, LOCAL if local else frozenset()))
        shown = f"[{host}]" if ":" in host else "127.0.0.1" if host == "0.0.0.0" else host
        address = f"http://{shown}:{number}/"
        link = address if password_file else f"{address}?token={secret}"
        sys.stdout.write(f"The workbench is at {link}\nCtrl-C ends it; every decision is stored at once.\n")
        sys.stdout.flush()
        if not no_browser:
            link = f"{address}?code={app.one_time_code()}"
            opening = threading.Timer(_BROWSER_AFTER, webbrowser.open, [link])
            opening.daemon = True
            opening.start()
        run(app, listener)
    finally:
        bench.stop()


def _secret(token: str | None, password_file: str | None) -> str | None:
    """The token, if one was given."""
    if token is not None and password_file is not None:
        raise BilexError("give --token or --password-file, not both.")
    if password_file is not None:
        try:
            token = Path(password_file).read_text(encoding="utf-8").split("\n", 1)[0].strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BilexError(f"{password_file}: cannot be read ({error}).") from error
    if token is not None and (
        len(token) < _SHORTEST_TOKEN or not token.isascii() or any(c.isspace() for c in token)
    ):
        raise BilexError(f"a token needs {_SHORTEST_TOKEN} or more ASCII characters without spaces.")
    return token


def listening(host: str, port: int | None) -> socket.socket:
    """A listening socket: at the given port, or at the first free one from the default on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in [port] if port is not None else [*range(_FIRST_PORT, _FIRST_PORT + _PORTS), 0]:
        # With the protocol named, asyncio sends small answers at once instead of waiting for the browser's
        # acknowledgement of their headers, which may take 40 ms.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
            listener.listen(128)
            return listener
        except OSError as error:
            listener.close()
            refused = error
    raise BilexError(
        f"port {port or _FIRST_PORT} of {host} is not available ({refused.strerror}); give another --port."
    )
