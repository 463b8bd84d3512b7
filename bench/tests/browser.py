"""A real Chromium for tests of pages, driven by chromedriver's HTTP interface; both may be missing."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
AVAILABLE = CHROMIUM is not None and DRIVER is not None
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element in the WebDriver standard
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
    "--force-prefers-reduced-motion",  # a page that scrolls smoothly moves away from under the pointer
)


class Browser:
    """One window."""

    def __init__(self, address: str) -> None:
        self._address = address

    def command(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """One command of the WebDriver standard."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._address}{path}", data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"].splitlines()[0]) from error

    def open(self, address: str) -> None:
        """Load a page."""
        self.command("POST", "/url", {"url": address})

    def script(self, text: str, *arguments: Any) -> Any:
        """Run JavaScript; `return` gives something back."""
        return self.command("POST", "/execute/sync", {"script": text, "args": list(arguments)})

    def click(self, selector: str) -> None:
        """Move the pointer to an element and press, as a person does; it must be seen and not covered."""
        found = self.command("POST", "/element", {"using": "css selector", "value": selector})
        self.command("POST", f"/element/{found[_ELEMENT]}/click", {})

    def type(self, selector: str, text: str) -> None:
        """Type into an element."""
        found = self.command("POST", "/element", {"using": "css selector", "value": selector})
        self.command("POST", f"/element/{found[_ELEMENT]}/value", {"text": text})

    def hover(self, x: float, y: float) -> None:
        """Move the pointer to a place in the window."""
        move = {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}
        pointer = {
            "type": "pointer",
            "id": "mouse",
            "parameters": {"pointerType": "mouse"},
            "actions": [move],
        }
        self.command("POST", "/actions", {"actions": [pointer]})

    def console(self) -> list[str]:
        """What the page complained of since the last call: errors, refused loads, warnings."""
        entries = self.command("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, path: Path) -> None:
        """What is seen, as PNG."""
        path.write_bytes(base64.b64decode(self.command("GET", "/screenshot")))


@contextlib.contextmanager
def browser(width: int = 1280, height: int = 900, *, phone: bool = False) -> Iterator[Browser]:
    """A window of some size; a phone has a touch screen and a narrow page."""
    assert DRIVER is not None
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="bilex-browser-", ignore_cleanup_errors=True) as profile:
        flags = [*_FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        chrome: dict[str, Any] = {"binary": CHROMIUM, "args": flags}
        if phone:
            chrome["mobileEmulation"] = {
                "deviceMetrics": {"width": width, "height": height, "pixelRatio": 1, "touch": True}
            }
        wanted = {"goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL"}}
        driver = subprocess.Popen(
            [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            root = Browser(f"http://127.0.0.1:{port}")
            _wait_for(root)
            try:
                session = root.command("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            except RuntimeError as error:  # such as a driver of another version than the browser
                pytest.skip(f"chromedriver cannot start chromium: {error}")
            window = Browser(f"http://127.0.0.1:{port}/session/{session['sessionId']}")
            try:
                yield window
            finally:
                window.command("DELETE", "")
        finally:
            driver.terminate()
            driver.wait(20)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(driver: Browser, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            if driver.command("GET", "/status")["ready"]:
                return
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > end:
                raise
        time.sleep(0.05)
