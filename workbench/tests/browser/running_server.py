"""The real `bilex serve` in a process of its own."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOKEN = "a-token-of-the-browser-tests"
_PATIENCE_S = 120


@dataclass(frozen=True)
class Server:
    """A running `bilex serve`.

    Args:
        address: Its address without a path.
        folder: The folder that it was started in.
        process: Its process.
    """

    address: str
    folder: Path
    process: subprocess.Popen[bytes]


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _asked(server: Server, path: str) -> dict[str, Any]:
    request = urllib.request.Request(
        f"{server.address}/api/{path}", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def _wait(server: Server, log: Path) -> None:
    """Until the server is up and, if it has a model, has opened it and filled the table."""
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        if server.process.poll() is not None:
            raise AssertionError(f"bilex serve ended: {log.read_text(encoding='utf-8', errors='replace')}")
        try:
            with urllib.request.urlopen(f"{server.address}/api/health", timeout=5) as answer:
                state = json.load(answer)["model"]
            if state == "none" or (state == "ready" and _asked(server, "model")["entries"]["complete"]):
                return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.05)
    raise AssertionError("bilex serve did not answer.")


@contextmanager
def serve(arguments: Sequence[str], folder: Path) -> Iterator[Server]:
    """Start the server in a folder, and end it afterwards.

    Args:
        arguments: What stands behind `bilex serve`, less port and token.
        folder: Where it runs; its output goes to server.log there.
    """
    port = _free_port()
    command = [sys.executable, "-m", "bilex", "serve", *arguments]
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--port", str(port), "--token", TOKEN, "--no-browser"],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
    server = Server(f"http://127.0.0.1:{port}", folder, process)
    try:
        _wait(server, log)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
