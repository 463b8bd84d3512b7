"""`bilex serve`: the workbench in the browser."""

from __future__ import annotations

import secrets
import socket
import sys
import threading
import time
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bilex.cli.options import examples
from bilex.core.errors import BilexError

if TYPE_CHECKING:
    from bilex_workbench.examples import Corpus

_LOCAL = ("127.0.0.1", "localhost", "::1")
_SHORTEST_TOKEN = 8
_FIRST_PORT, _PORTS = 8765, 50
_BROWSER_AFTER = 0.5
# How long a thread may keep others from running: searches and requests take turns many times a second.
_SWITCH_SECONDS = 0.0005


@click.command(
    epilog=examples(
        "bilex serve en-fi",
        "bilex serve en-fi --port 9000 --no-browser",
        "bilex serve en-fi --corpus europarl.en.gz europarl.fi.gz",
        "bilex serve --folder ~/vectors                        (no model yet: make one in the browser)",
        "bilex serve en-fi --host 0.0.0.0 --password-file secret.txt",
    )
)
@click.argument("model", type=click.Path(), required=False)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help=f"The port.  [default: {_FIRST_PORT} or the next free]"
)
@click.option("--token", help="What requests must carry; a random one by default.")
@click.option("--password-file", type=click.Path(), help="A file whose first line is the token.")
@click.option("--folder", type=click.Path(), help="Files for a first fit may be chosen from this folder.")
@click.option(
    "--corpus",
    type=click.Path(),
    nargs=2,
    metavar="SOURCE TARGET",
    help="Text to show examples from: files, gzip too, or folders; '-' for none. Indexed once.",
)
@click.option(
    "--earlier-models",
    type=click.IntRange(0, 100),
    default=5,
    show_default=True,
    help="How many earlier models are kept when a retrained one takes their place.",
)
@click.option("--no-browser", is_flag=True, help="Only print the link.")
def command(
    model: str | None,
    host: str,
    port: int | None,
    token: str | None,
    password_file: str | None,
    folder: str | None,
    corpus: tuple[str, str] | None,
    earlier_models: int,
    no_browser: bool,
) -> None:
    """Review, correct, retrain and publish the dictionary of a MODEL in the browser.

    Without MODEL the page offers the packaged sample and a form for files of your own. What people decide
    is kept in MODEL.review.sqlite beside the model. The server listens on this machine only; any other
    --host needs --token or --password-file.
    """
    for package in ("fastapi", "uvicorn"):
        if find_spec(package) is None:
            raise BilexError(
                "the workbench needs further packages; install them with pip install bilex-workbench."
            )
    secret = _secret(host, token, password_file)
    allowed = _folder(folder)
    from bilex_workbench.access import LOCAL, AccessPolicy
    from bilex_workbench.connections import run
    from bilex_workbench.server import application
    from bilex_workbench.state import Settings, Workbench

    sys.setswitchinterval(_SWITCH_SECONDS)
    settings = Settings(folder=allowed, work=allowed or Path.cwd(), earlier=earlier_models)
    bench = Workbench(settings, Path(model) if model else None)
    try:
        if model is not None:
            bench.corpus = _corpus(model, corpus)
        listener = listening(host, port)
        number = listener.getsockname()[1]
        hosts = LOCAL if host in _LOCAL else frozenset()
        app = application(bench, AccessPolicy(secret, hosts))
        shown = f"[{host}]" if ":" in host else "127.0.0.1" if host == "0.0.0.0" else host
        address = f"http://{shown}:{number}/"
        link = address if password_file else f"{address}?token={secret}"
        sys.stdout.write(
            f"The workbench is at {link}\nCtrl-C ends it; decisions are kept as they are made.\n"
        )
        sys.stdout.flush()
        if not no_browser:
            _open_later(f"{address}?code={app.one_time_code()}")
        run(app, listener)
    finally:
        bench.stop()


def _corpus(model: str, texts: tuple[str, str] | None) -> Corpus | None:
    """The index of the example sentences, built where it must be."""
    from bilex.cli.console import progress
    from bilex_workbench.examples import opened_corpus

    source, target = (None if name == "-" else name for name in texts or ("-", "-"))
    return opened_corpus(model, source, target, progress())


def _secret(host: str, token: str | None, password_file: str | None) -> str:
    """The token; whoever listens beyond this machine must name one.

    Raises:
        BilexError: It is missing where it is needed, too short, or its file cannot be read.
    """
    if token is not None and password_file is not None:
        raise BilexError("give --token or --password-file, not both.")
    if password_file is not None:
        try:
            token = Path(password_file).read_text(encoding="utf-8").split("\n", 1)[0].strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BilexError(f"{password_file}: cannot be read ({error}).") from error
    if token is None:
        if host not in _LOCAL:
            raise BilexError(
                f"--host {host} lets other machines in; give --token or --password-file as well."
            )
        return secrets.token_urlsafe(24)
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or any(c.isspace() for c in token):
        raise BilexError(f"a token needs {_SHORTEST_TOKEN} or more ASCII characters without spaces.")
    return token


def _folder(folder: str | None) -> Path | None:
    if folder is None:
        return None
    found = Path(folder).expanduser().resolve()
    if not found.is_dir():
        raise BilexError(f"{folder}: is no folder; name one that holds the vector files.")
    return found


def listening(host: str, port: int | None) -> socket.socket:
    """A socket that listens: at the port that was named, or the first free one from the usual on.

    Raises:
        BilexError: The address or port cannot be had.
    """
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
        f"port {port or _FIRST_PORT} of {host} cannot be had ({refused.strerror}); give another --port."
    )


def _open_later(link: str) -> None:
    def wait_and_open() -> None:
        time.sleep(_BROWSER_AFTER)
        webbrowser.open(link)

    threading.Thread(target=wait_and_open, daemon=True).start()
