"""Bringing a known data set into a data folder."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file
from bilex.core.progress import SILENT, Progress
from bilex_bench.datasets.catalogue import DICTIONARIES, VECTORS, KnownData, RemoteFile
from bilex_bench.datasets.download import download
from bilex_bench.datasets.first_words import download_words
from bilex_bench.datasets.layouts import LANGUAGE, count_name

_LARGEST_DICTIONARY = 256 << 20
_PANLEX_FILE = re.compile(rf"(({LANGUAGE})-({LANGUAGE}))\.(?:train|test)\.\d+\.cc\.trans")


def fetch(
    data: KnownData,
    folder: Path,
    languages: Collection[str] = (),
    *,
    words: int | None,
    progress: Progress = SILENT,
) -> Iterator[tuple[Path, bool]]:
    """Fetch what is not there yet."""
    wanted = data.wanted(languages)
    files = data.files(wanted)
    if not files:
        raise BilexError(f"{data.name}: has no pair among {', '.join(wanted)}; name two of its languages.")
    for file in files:
        target = folder / file.path
        if data.kind == VECTORS:
            yield _fetch_vectors(file, target, words, progress)
            continue
        missing = not target.is_file()
        if missing:
            advice = (
                f"get {data.address} where there is a network and put its dictionaries, named as there, into "
                f"{folder / DICTIONARIES / data.name}"
            )
            download(file.address, target, git_blob=file.git_blob, advice=advice, progress=progress)
        if target.suffix == ".zip":
            _unpack(target, wanted)
        yield target, missing


def _fetch_vectors(file: RemoteFile, whole: Path, words: int | None, progress: Progress) -> tuple[Path, bool]:
    if whole.is_file():
        return whole, False
    advice = f"fetch it where there is a network and put it, whole, at {whole}"
    if words is None:
        download(file.address, whole, advice=advice, progress=progress)
        return whole, True
    stem = whole.name.removesuffix(".gz").removesuffix(".vec")
    cut = whole.with_name(f"{stem}.{count_name(words)}.vec")
    if cut.is_file():
        return cut, False
    download_words(file.address, whole, cut, words, advice, progress)
    return cut, True


def _unpack(archive: Path, languages: Collection[str]) -> None:
    """Write the dictionaries of a PanLex archive, one folder a pair."""
    count = 0
    try:
        with zipfile.ZipFile(archive) as content:
            for member in content.infolist():
                match = _PANLEX_FILE.fullmatch(Path(member.filename).name)
                if match is None:
                    continue
                count += 1
                if member.file_size > _LARGEST_DICTIONARY:
                    raise BilexError(
                        f"{archive}: '{match[0]}' in it would unpack to {member.file_size:,} bytes, "
                        "too much for a dictionary; remove it and fetch it again."
                    )
                if {match[2], match[3]} <= set(languages):
                    with atomic_file(archive.parent / match[1] / match[0]) as temporary:
                        temporary.write_bytes(content.read(member))
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # encrypted: RuntimeError
        archive.unlink()
        raise BilexError(
            f"{archive}: was no whole zip archive and is removed; run the same command again."
        ) from error
    if not count:
        raise BilexError(f"{archive}: holds no PanLex dictionaries; remove it and fetch it again.")
