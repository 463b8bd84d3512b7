"""Servers that lie, drip, redirect or pack gigabytes into a line."""

from __future__ import annotations

import gzip
import io
import socket
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bilex import BilexError
from bilex_bench.datasets import download as downloading
from bilex_bench.datasets.catalogue import KNOWN
from bilex_bench.datasets.download import download, download_words
from bilex_bench.store import ResultsStore


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloading, "_PAUSE_S", 0.0)


@contextmanager
def key_side(*answers: bytes, drip: float | None = None) -> Iterator[str]:
    """A server that sends these bytes, one answer a connection, the last again and again."""
    listening = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve() -> None:
        waiting = list(answers)
        while not done.is_set():
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
                try:
                    connection.sendall(answer)
                    while drip is not None and not done.wait(drip):
                        connection.sendall(b"x")
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/a.bin"
    finally:
        done.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if ".part" not in path.name)


@pytest.mark.parametrize("length", ["abc", "-1", "", "1e3", "5, 5", "٣"])
def test_a_length_that_is_none_is_not_believed(tmp_path: Path, length: str) -> None:
    with key_side(answer(b"hello", f"Content-Length: {length}")) as address:
        try:
            download(address, tmp_path / "a.bin")
        except BilexError as error:
            assert "\n" not in str(error)
        else:
            assert (tmp_path / "a.bin").read_bytes() == b"hello"


@pytest.mark.parametrize(
    "place", ["http://[::1", "http://127.0.0.1:abc/", "file:///etc/passwd", "\x00", "", "http://", "/a b\tc"]
)
def test_redirects_that_lead_nowhere_are_one_sentence(tmp_path: Path, place: str) -> None:
    moved = answer(b"", f"Location: {place}", "Content-Length: 0", status="302 Found")
    with key_side(moved) as address, pytest.raises(BilexError) as caught:
        download(address, tmp_path / "a.bin")
    assert "\n" not in str(caught.value) and left_in(tmp_path) == []


@pytest.mark.parametrize("page", [b"<html><body>log in", b"  <!DOCTYPE HTML>\n<p>sorry"])
def test_a_web_page_is_no_file(tmp_path: Path, page: bytes) -> None:
    with key_side(answer(page)) as address, pytest.raises(BilexError, match="answers with a web page"):
        download(address, tmp_path / "a.bin")
    assert left_in(tmp_path) == []


def test_a_body_that_is_cut_is_no_success(tmp_path: Path) -> None:
    cut = answer(b"hello", "Content-Length: 500")
    with key_side(cut) as address, pytest.raises(BilexError, match="the connection broke after 5 bytes"):
        download(address, tmp_path / "a.bin")
    chunked = answer(b"5\r\nhello\r\n9\r\nwor", "Transfer-Encoding: chunked")
    with key_side(chunked) as address, pytest.raises(BilexError, match="the connection broke"):
        download(address, tmp_path / "b.bin")
    assert left_in(tmp_path) == []


def test_a_server_that_drips_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloading, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(downloading, "_SLOWEST", 10_000)
    monkeypatch.setattr(downloading, "_ATTEMPTS", 2)
    endless = answer(b"", "Content-Length: 1000000000")
    with key_side(endless, drip=0.01) as address, pytest.raises(BilexError, match="fewer than 10,000 bytes"):
        download(address, tmp_path / "a.bin")


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("beginning", [b"", b"2 3\n", b"2 3\na 1 2 3\n"])
def test_a_line_that_never_ends_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool, beginning: bytes
) -> None:
    """A bomb of 40 MB stands for one of 6 GB; 100,000 bytes for the 16 MB that a line may have."""
    monkeypatch.setattr(downloading, "_LONGEST_LINE", 100_000)
    seen: list[int] = []
    real = downloading._WordWriter._unpacked

    def watched(self: downloading._WordWriter, block: bytes) -> Iterator[bytes]:
        for piece in real(self, block):
            seen.append(len(piece))
            yield piece

    monkeypatch.setattr(downloading._WordWriter, "_unpacked", watched)
    content = beginning + bytes(40_000_000 if packed else 2_000_000)
    body = gzip.compress(content) if packed else content
    whole = tmp_path / ("x.vec.gz" if packed else "x.vec")
    with key_side(answer(body)) as address, pytest.raises(BilexError, match="a line has more than"):
        download_words(address, whole, tmp_path / "cut.vec", 10, "do something")
    assert sum(seen) < 8 << 20 and left_in(tmp_path) == []


def test_packed_text_comes_out_whole_however_it_is_packed(tmp_path: Path) -> None:
    lines = [f"w{number} 0.5 {'1' * 3000}\n" for number in range(3000)]
    text = f"{len(lines)} 2\n".encode() + "".join(lines).encode()
    half = len(text) // 2
    body = gzip.compress(text[:half]) + gzip.compress(b"") + gzip.compress(text[half:])
    with key_side(answer(body)) as address:
        download_words(address, tmp_path / "x.vec.gz", tmp_path / "cut.vec", 10_000, "do something")
    assert (tmp_path / "cut.vec").read_bytes() == text


def test_encrypted_and_escaping_archives_write_nothing_outside(tmp_path: Path) -> None:
    from bilex_bench.datasets import catalogue

    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name in (
            "../../bg-ca.test.9.cc.trans",
            "/tmp/bg-ca.test.9.cc.trans",
            "x/../bg-ca.train.1.cc.trans",
        ):
            archive.writestr(name, "a b\n")
    folder = tmp_path / "inner" / "panlex"
    folder.mkdir(parents=True)
    (folder / "bg.zip").write_bytes(held.getvalue())
    catalogue._unpack(folder / "bg.zip", {"bg", "ca"})
    written = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.trans")]
    assert written and all(path.is_relative_to("inner/panlex/bg-ca") for path in written)


def test_a_results_file_is_locked_under_every_name(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "file").symlink_to("real/q.sqlite")
    (tmp_path / "folder").symlink_to("real")
    with ResultsStore.open(tmp_path / "real" / "q.sqlite") as store, store.claim():
        for name in ("file", "folder/q.sqlite"):
            with ResultsStore.open(tmp_path / name) as other, pytest.raises(BilexError, match="is in use"):
                other.claim().__enter__()
    assert sorted(path.name for path in (tmp_path / "real").iterdir()) == ["q.sqlite"]


def test_every_address_of_the_catalogue_is_https() -> None:
    for data in KNOWN:
        languages = data.wanted([] if data.name == "panlex" else ["en", "fi"])
        assert all(file.address.startswith("https://") for file in data.files(languages)), data.name
