"""Fetching: resuming, checksums, and every way in which it can fail."""

from __future__ import annotations

import gzip
import io
import random
import socket
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bilex import BilexError
from bilex.vectors import WordVectors
from bilex_bench.datasets import download as downloading
from bilex_bench.datasets.catalogue import KNOWN, fetch, known
from bilex_bench.datasets.download import download, download_words
from data_server import DataServer, serving

CONTENT = random.Random(0).randbytes(3_000_000)


@pytest.fixture
def server() -> Iterator[DataServer]:
    with serving() as data:
        yield data


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloading, "_PAUSE_S", 0.0)


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_whole_file(server: DataServer, tmp_path: Path) -> None:
    download(server.add("/a.bin", CONTENT), tmp_path / "new" / "a.bin")
    assert (tmp_path / "new" / "a.bin").read_bytes() == CONTENT
    assert left_in(tmp_path / "new") == ["a.bin"]


def test_a_cut_connection_is_gone_on_with_in_the_same_run(server: DataServer, tmp_path: Path) -> None:
    address = server.add("/a.bin", CONTENT)
    server.cuts["/a.bin"] = [1_000_000, 500_000]
    download(address, tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert server.asked == [
        ("/a.bin", None),
        ("/a.bin", "bytes=1000000-"),
        ("/a.bin", "bytes=1500000-"),
    ]
    assert server.sent["/a.bin"] == len(CONTENT)


def test_a_connection_that_breaks_time_and_again_and_a_later_run(server: DataServer, tmp_path: Path) -> None:
    address = server.add("/a.bin", CONTENT)
    server.cuts["/a.bin"] = [1_234_567] + [0] * 10
    with pytest.raises(
        BilexError, match=r"the connection broke after 1,234,567 bytes .*run the same command"
    ):
        download(address, tmp_path / "a.bin")
    assert left_in(tmp_path) == ["a.bin.part", "a.bin.part.tag"]
    assert len(server.asked) == 4, "it gives up after so many attempts without a byte"
    server.cuts.clear()
    download(address, tmp_path / "a.bin")
    assert server.asked[-1] == ("/a.bin", "bytes=1234567-")
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert left_in(tmp_path) == ["a.bin"]


def test_a_file_that_changed_meanwhile_is_fetched_anew(server: DataServer, tmp_path: Path) -> None:
    address = server.add("/a.bin", CONTENT)
    server.cuts["/a.bin"] = [1000, 0, 0, 0, 0]
    with pytest.raises(BilexError):
        download(address, tmp_path / "a.bin")
    server.cuts.clear()
    server.add("/a.bin", CONTENT[::-1], '"2"')
    download(address, tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize(("ranges", "tag"), [(False, '"1"'), (True, None), (True, 'W/"1"')])
def test_a_server_that_cannot_go_on_sends_all(
    server: DataServer, tmp_path: Path, ranges: bool, tag: str | None
) -> None:
    address = server.add("/a.bin", CONTENT, tag)
    server.ranges = ranges
    server.cuts["/a.bin"] = [1_000_000]
    download(address, tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert server.sent["/a.bin"] == 1_000_000 + len(CONTENT)


def test_a_part_that_is_the_whole(server: DataServer, tmp_path: Path) -> None:
    address = server.add("/a.bin", CONTENT)
    (tmp_path / "a.bin.part").write_bytes(CONTENT)
    (tmp_path / "a.bin.part.tag").write_text('"1"')
    download(address, tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert server.sent == {}


def test_checksums_are_those_of_git(server: DataServer, tmp_path: Path) -> None:
    # What `git hash-object` says of these two contents.
    download(
        server.add("/a", b"hello\n"), tmp_path / "a", git_blob="ce013625030ba8dba906f756967f9e9ca394464a"
    )
    download(server.add("/b", b""), tmp_path / "b", git_blob="e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
    with pytest.raises(BilexError, match=r"/c: the file differs from the expected one"):
        download(
            server.add("/c", b"hallo\n"), tmp_path / "c", git_blob="ce013625030ba8dba906f756967f9e9ca394464a"
        )
    assert left_in(tmp_path) == ["a", "b"]


def test_redirects_are_followed_but_never_to_plain_http_elsewhere(server: DataServer, tmp_path: Path) -> None:
    server.redirects = {"/old": server.add("/new", CONTENT), "/away": "http://example.org/new"}
    download(f"{server.address}/old", tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    with pytest.raises(BilexError, match=r"/away: leads to http://example\.org/new, which is not https"):
        download(f"{server.address}/away", tmp_path / "b.bin")
    with pytest.raises(BilexError, match="which is not https"):
        download("http://example.org/new", tmp_path / "b.bin")
    assert left_in(tmp_path) == ["a.bin"]


def test_a_missing_file(server: DataServer, tmp_path: Path) -> None:
    with pytest.raises(BilexError, match=r"http://.*/no: the server answers 404 .* put it at .*/no\.$"):
        download(f"{server.address}/no", tmp_path / "no")
    assert left_in(tmp_path) == []


def test_a_server_in_trouble(server: DataServer, tmp_path: Path) -> None:
    server.broken.add("/a")
    with pytest.raises(BilexError, match="the server answers 503"):
        download(server.add("/a", b"x"), tmp_path / "a")
    assert len(server.asked) == 4


def test_no_network(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/a.bin"
        with pytest.raises(BilexError) as caught:
            download(address, tmp_path / "a.bin")
    assert str(caught.value) == (
        f"{address}: cannot be reached (Connection refused); fetch it where there is a network and put it at "
        f"{tmp_path / 'a.bin'}."
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_full_disk(server: DataServer, tmp_path: Path) -> None:
    (tmp_path / "a.bin.part").symlink_to("/dev/full")
    with pytest.raises(BilexError, match=r"a\.bin\.part: the disk is full; free some space"):
        download(server.add("/a.bin", CONTENT), tmp_path / "a.bin")
    assert not (tmp_path / "a.bin").exists()


def test_a_folder_that_cannot_be_written(server: DataServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BilexError, match=r"a\.bin\.part: cannot be written"):
        download(server.add("/a.bin", CONTENT), tmp_path / "file" / "a.bin")


def vector_text(words: int, dim: int = 40) -> bytes:
    draw = random.Random(1)
    lines = [f"{words} {dim}"]
    for word in range(words):
        lines.append(f"w{word} " + " ".join(f"{draw.gauss(0, 1):.4f}" for _ in range(dim)))
    return "\n".join(lines).encode() + b"\n"


TEXT = vector_text(20_000)


@pytest.mark.parametrize("name", ["wiki.en.vec", "cc.en.300.vec.gz"])
def test_only_the_first_words_travel(server: DataServer, tmp_path: Path, name: str) -> None:
    content = gzip.compress(TEXT, 1) if name.endswith(".gz") else TEXT
    address = server.add(f"/{name}", content)
    server.cuts[f"/{name}"] = [100_000]
    download_words(address, tmp_path / name, tmp_path / "cut.vec", 1000, "do something")
    lines = TEXT.split(b"\n")
    assert (tmp_path / "cut.vec").read_bytes() == b"\n".join([b"1000 40", *lines[1:1001], b""])
    assert server.asked[1] == (f"/{name}", "bytes=100000-")
    assert left_in(tmp_path) == ["cut.vec"]
    assert len(WordVectors.load(tmp_path / "cut.vec")) == 1000


def test_a_block_is_all_that_a_small_cut_needs(tmp_path: Path, server: DataServer) -> None:
    content = TEXT * 8
    download_words(
        server.add("/en.vec", content), tmp_path / "en.vec", tmp_path / "cut.vec", 10, "do something"
    )
    assert server.sent["/en.vec"] < len(content) / 2


def test_fewer_words_than_asked_for_and_no_last_line_end(server: DataServer, tmp_path: Path) -> None:
    address = server.add("/en.vec.gz", gzip.compress(b"2 3\na 1 2 3\nb 4 5 6"))
    download_words(address, tmp_path / "en.vec.gz", tmp_path / "cut.vec", 10, "do something")
    assert (tmp_path / "cut.vec").read_bytes() == b"2 3\na 1 2 3\nb 4 5 6\n"


@pytest.mark.parametrize("content", [b"hello", gzip.compress(b"2 3\na 1 2 3\n", mtime=0), b"not gzip"])
def test_what_is_no_vector_file(server: DataServer, tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BilexError, match=r"the file holds no word vectors \(.*\); run"):
        download_words(
            server.add("/x.vec.gz", content), tmp_path / "x.vec.gz", tmp_path / "cut.vec", 10, "do something"
        )
    assert left_in(tmp_path) == []


def test_vectors_go_under_names_that_are_found_again(server: DataServer, tmp_path: Path) -> None:
    server.add("/wiki.en.vec", TEXT)
    data = replace(known("fasttext-wiki"), base=server.address)
    cut = tmp_path / "vectors" / "wiki.en.5k.vec"
    assert list(fetch(data, tmp_path, ["en"], words=5000)) == [(cut, True)]
    assert list(fetch(data, tmp_path, ["en"], words=5000)) == [(cut, False)]
    whole = tmp_path / "vectors" / "wiki.en.vec"
    assert list(fetch(data, tmp_path, ["en"], words=None)) == [(whole, True)]
    assert whole.read_bytes() == TEXT
    assert list(fetch(data, tmp_path, ["en"], words=5000)) == [(whole, False)]


def archive(*names: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            file.writestr(name, "дом\tcasa\n")
    return content.getvalue()


def test_panlex_archives_are_unpacked(server: DataServer, tmp_path: Path) -> None:
    content = archive(
        "bg-l2/bg-ca/bg-ca.train.1000.cc.trans",
        "bg-l2/bg-ca/bg-ca.test.2000.cc.trans",
        "bg-l2/bg-et/bg-et.test.2000.cc.trans",
        "../../evil.txt",
        "README",
    )
    server.add("/bg-l2.zip", content)
    server.add("/ca-l2.zip", archive("ca-l2/ca-bg/ca-bg.test.2000.cc.trans"))
    data = replace(known("panlex"), base=server.address)
    assert [is_new for _, is_new in fetch(data, tmp_path, ["bg", "ca"], words=None)] == [True, True]
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert found == [
        "dictionaries/panlex/bg-ca/bg-ca.test.2000.cc.trans",
        "dictionaries/panlex/bg-ca/bg-ca.train.1000.cc.trans",
        "dictionaries/panlex/bg-l2.zip",
        "dictionaries/panlex/ca-bg/ca-bg.test.2000.cc.trans",
        "dictionaries/panlex/ca-l2.zip",
    ]


@pytest.mark.parametrize("content", [b"no zip", archive("README"), archive("bg-ca.test.9.cc.trans")[:-30]])
def test_a_bad_archive(server: DataServer, tmp_path: Path, content: bytes) -> None:
    server.add("/bg-l2.zip", content)
    data = replace(known("panlex"), base=server.address)
    with pytest.raises(BilexError, match=r"bg-l2\.zip: (was an incomplete zip archive|holds no PanLex)"):
        list(fetch(data, tmp_path, words=None))


def test_the_catalogue() -> None:
    addresses = {
        data.name: [file.address for file in data.files(data.wanted(["en", "fi"]))]
        for data in KNOWN
        if data.name != "panlex"
    }
    assert addresses["fasttext-wiki"][1] == "https://dl.fbaipublicfiles.com/fasttext/vectors-wiki/wiki.fi.vec"
    assert (
        addresses["fasttext-cc"][0]
        == "https://dl.fbaipublicfiles.com/fasttext/vectors-crawl/cc.en.300.vec.gz"
    )
    assert [address.rpartition("/")[2] for address in addresses["xling"]] == [
        "yacle.test.freq.2k.en-fi.tsv",
        "yacle.train.freq.1k.en-fi.tsv",
        "yacle.train.freq.5k.en-fi.tsv",
    ]
    assert addresses["muse"] == [
        f"https://dl.fbaipublicfiles.com/arrival/dictionaries/{name}.txt"
        for name in ("en-fi.0-5000", "en-fi.5000-6500", "fi-en.0-5000", "fi-en.5000-6500")
    ]
    xling = known("xling").files(known("xling").wanted([]))
    assert len(xling) == 84
    assert all(file.git_blob and len(file.git_blob) == 40 for file in xling)
    assert len({file.git_blob for file in xling}) == 84
    panlex = known("panlex").files(known("panlex").wanted([]))
    assert len(panlex) == 15
    assert panlex[0].address == "https://github.com/cambridgeltl/panlex-bli/raw/master/lexicons/bg-l2.zip"


@pytest.mark.parametrize(
    ("name", "languages", "sentence"),
    [
        ("xling", ["en", "es"], r"xling: has no language 'es'; it has de, en, fi,"),
        ("fasttext-cc", [], r"fasttext-cc: name the languages to fetch"),
        ("fasttext-cc", ["../x"], r"has no language '\.\./x'"),
        ("muse", ["fi", "ru"], r"muse: has no pair among fi, ru"),
        ("panlex", ["bg"], r"panlex: has no pair among bg"),
    ],
)
def test_languages_that_cannot_be_fetched(
    tmp_path: Path, name: str, languages: list[str], sentence: str
) -> None:
    with pytest.raises(BilexError, match=sentence):
        list(fetch(known(name), tmp_path, languages, words=None))
    assert left_in(tmp_path) == []


def test_an_archive_that_unpacks_to_gigabytes_is_refused(
    server: DataServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bilex_bench.datasets.catalogue._LARGEST_DICTIONARY", 3)
    server.add("/bg-l2.zip", archive("bg-ca.test.9.cc.trans"))
    with pytest.raises(BilexError, match="too much for a dictionary"):
        list(fetch(replace(known("panlex"), base=server.address), tmp_path, words=None))
    assert not list(tmp_path.rglob("*.trans"))
