"""Connections that send nothing, too many of them, and a log that somebody else fills."""

from __future__ import annotations

import logging
import socket
import threading
import time

import pytest
import uvicorn

from bilex_workbench import server as limits
from bilex_workbench.server import LimitedLog, LimitedProtocol


async def app(scope, receive, send):
    if scope["type"] == "http":
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def address(monkeypatch):
    monkeypatch.setattr(limits, "HEADER_SECONDS", 0.4)
    monkeypatch.setattr(limits, "MOST_CONNECTIONS", 20)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, http=LimitedProtocol, ws="none", lifespan="off", log_level="critical")
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listener.getsockname()
    server.should_exit = True
    thread.join(10)


def ask(address, text=b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"):
    connection = socket.create_connection(address, 5)
    connection.sendall(text)
    return connection


def closed(connection, seconds):
    connection.settimeout(seconds)
    try:
        while connection.recv(1000):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


@pytest.mark.parametrize("text", [b"", b"GET / HTTP/1.1\r\nHos"])
def test_an_unfinished_header_is_not_waited_for(address, text):
    assert closed(ask(address, text), 3)


def test_bytes_that_drip_do_not_make_more_time(address):
    connection = ask(address, b"GET / HTTP/1.1\r\n")
    with pytest.raises(OSError):
        for _ in range(1_000):
            connection.sendall(b"a: b\r\n")
            time.sleep(0.02)


@pytest.mark.parametrize("text", [b"GET / HT", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nto"])
def test_unfinished_requests_keep_nobody_out(address, text):
    held = [ask(address, text) for _ in range(60)]
    time.sleep(0.2)  # all of them have arrived
    connection = ask(address)
    assert b"200 OK" in connection.recv(1000)
    assert sum(closed(one, 0.05) for one in held) >= 40  # 20 may stay


def test_a_log_has_few_lines_per_minute(monkeypatch):
    log = LimitedLog()
    record = logging.LogRecord("a", logging.WARNING, "", 0, "a line", (), None)
    assert sum(log.filter(record) for _ in range(1_000)) == 20
    moment = time.monotonic()
    monkeypatch.setattr(limits.time, "monotonic", lambda: moment + 61)
    assert log.filter(record) and "980 messages were left out" in record.getMessage()
