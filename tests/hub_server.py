"""A server that behaves like the Hugging Face hub, as far as pushing and fetching a repository goes."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Repository = dict[str, bytes]


class Hub(ThreadingHTTPServer):
    """Repositories in memory, by name."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, Repository] = {}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def running_hub() -> Iterator[Hub]:
    """A hub that is gone when the block ends."""
    hub = Hub()
    thread = threading.Thread(target=hub.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()


def _commit(files: Repository) -> str:
    names = "".join(f"{name}{hashlib.sha1(content).hexdigest()}" for name, content in sorted(files.items()))
    return hashlib.sha1(names.encode()).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.0"  # no connection outlives the server

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = self.path.split("?")[0].strip("/").split("/")
        if parts == ["api", "repos", "create"]:
            wanted = json.loads(body)
            owner = wanted.get("organization") or "someone"
            name = wanted["name"] if "/" in wanted["name"] else f"{owner}/{wanted['name']}"
            self.server.repositories.setdefault(name, {})
            self._json({"url": f"{self.server.address}/{name}", "id": name, "name": name})
        elif parts[:2] == ["api", "validate-yaml"]:
            self._json({"errors": [], "warnings": []})
        elif parts[4:5] == ["preupload"]:
            files = [
                {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False}
                for f in json.loads(body)["files"]
            ]
            self._json({"files": files})
        elif parts[4:5] == ["commit"]:
            files = self.server.repositories["/".join(parts[2:4])]
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            commit = _commit(files)
            url = f"{self.server.address}/{'/'.join(parts[2:4])}/commit/{commit}"
            self._json({"commitUrl": url, "commitOid": commit, "success": True})
        else:
            self._missing()

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = self.path.split("?")[0].strip("/").split("/")
        api = parts[:2] == ["api", "models"]
        name = "/".join(parts[2:4] if api else parts[:2])
        files = self.server.repositories.get(name)
        if files is None:
            self._missing()
        elif api and parts[4:5] == ["tree"]:
            self._json([_listed(path, content) for path, content in sorted(files.items())])
        elif api:
            found = [{"rfilename": path} for path in sorted(files)]
            self._json(
                {
                    "id": name,
                    "modelId": name,
                    "sha": _commit(files),
                    "siblings": found,
                    "private": False,
                    "tags": [],
                    "downloads": 0,
                }
            )
        elif parts[2:3] == ["resolve"] and "/".join(parts[4:]) in files:
            content = files["/".join(parts[4:])]
            self._send(
                content, {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": _commit(files)}
            )
        else:
            self._missing()

    def _missing(self) -> None:
        self._send(b"{}", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, 404)

    def _json(self, value: Any) -> None:
        self._send(json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, content: bytes, headers: dict[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _listed(path: str, content: bytes) -> dict[str, Any]:
    return {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
