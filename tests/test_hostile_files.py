"""Files that lie, explode or never end: one sentence, little memory, and nothing of theirs is run.

All of them are opened by one other process, which may not take more memory than `ALLOWED` beyond what the
library itself takes.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import pickle
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from bilex.aligners import get_method
from bilex.cli import run
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.vectors import WordVectors
from planted import planted

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and /dev are those of Linux")

ALLOWED = 200 << 20
VICTIM = "/tmp/bilex-hostile-file-was-run"

_OPEN_ALL = """
import json, resource, sys
from bilex.core.errors import BilexError
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from bilex.model import Translator

WordVectors.load(sys.argv[1])  # whatever is compiled and imported once
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
kinds = {"vectors": WordVectors.load, "lexicon": Lexicon.load, "model": Translator.load}
found = {}
for line in sys.stdin.read().splitlines():
    kind, path = line.split(" ", 1)
    try:
        kinds[kind](path)
        found[path] = "read"
    except BilexError as error:
        found[path] = f"refused: {error}"
    except BaseException as error:
        found[path] = f"FAULT: {type(error).__name__}: {error}"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) << 10
    found[path] = [found[path], grown]
print(json.dumps(found))
"""


class Exploit:
    """What a pickle does when it is opened."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {VICTIM}",)


def opened(paths: dict[str, str], plain: Path) -> dict[str, str]:
    """What another process said of each file, which took little memory to say so."""
    asked = "\n".join(f"{kind} {path}" for path, kind in paths.items())
    command = [sys.executable, "-c", _OPEN_ALL, str(plain)]
    ended = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, list[object]] = json.loads(ended.stdout)
    assert list(found) == list(paths)
    for path, (said, grown) in found.items():
        assert isinstance(said, str) and isinstance(grown, int)
        assert not said.startswith("FAULT"), (path, said)
        assert "\n" not in said, path
        assert grown < ALLOWED, (path, said, grown)
    return {Path(path).name: str(said) for path, (said, _) in found.items()}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good folder of vectors."""
    path = tmp_path_factory.mktemp("plain") / "vectors"
    planted(40, 4).source.save(path)
    return path


def sparse(path: Path, size: int, beginning: bytes = b"") -> None:
    """A file of zeros that takes no room on the disk."""
    with path.open("wb") as file:
        file.write(beginning)
        file.truncate(size)


def safetensors(header: object, data: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_vector_files_of_all_kinds(tmp_path: Path, plain: Path) -> None:
    huge = 10**12
    promise = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({huge}, 300), }}"
    line = b"w 1 2 3\n"
    files: dict[str, bytes] = {
        "promise.vec": b"%d 3\n" % huge + line,
        "promise.bin": b"%d 300\nword " % huge + bytes(1200),
        "wide.bin": b"3 %d\nword " % huge + bytes(100),
        "fasttext.bin": struct.pack("<ii", 793712314, 12) + struct.pack("<i", 2**31 - 1) * 14 + bytes(100),
        "bomb.vec.gz": gzip.compress(bytes(100 << 20), 1),
        "lines.vec.gz": gzip.compress(b"\n" * (40 << 20), 1),
        "bomb.vec.bz2": bz2.compress(bytes(24 << 20)),
        "bomb.vec.xz": lzma.compress(bytes(40 << 20), preset=0),
        "pickle.vec": pickle.dumps(Exploit()),
        "pickle.npy": pickle.dumps(Exploit()),
        "cut.npy": b"\x93NUMPY\x01\x00v\x00" + promise.ljust(118).encode(),
        "nested.npy": b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535,
        "empty.vec": b"",
        "zeros.vec": bytes(1000),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    objects = np.array([[Exploit()]], object)
    np.save(tmp_path / "objects.npy", objects, allow_pickle=True)
    for name in ("objects.txt", "pickle.txt", "cut.txt", "nested.txt"):
        (tmp_path / name).write_text("word\n")
    sparse(tmp_path / "line.vec", 1 << 30)
    sparse(tmp_path / "after.vec", 1 << 30, b"2 3\nw 1 2 3\nv 1 2 3\n")
    sparse(tmp_path / "sparse.npy", 1 << 34, b"not numpy")
    os.mkfifo(tmp_path / "fifo.vec")
    (tmp_path / "link.vec").symlink_to("link.vec")
    kinds = {str(path): "vectors" for path in sorted(tmp_path.iterdir()) if path.suffix != ".txt"}
    kinds |= dict.fromkeys(("/dev/zero", "/dev/full", "/dev/stdin", "/proc/self/mem"), "vectors")
    found = opened(kinds, plain)
    assert {name for name, said in found.items() if said == "read"} == {"promise.vec"}
    assert all("is a pipe or a device" in found[name] for name in ("fifo.vec", "zero", "full"))
    assert all("a line of more than 16 MB" in found[n] for n in ("line.vec", "after.vec", "bomb.vec.gz"))
    assert not Path(VICTIM).exists()


def test_vector_folders_that_lie(tmp_path: Path, plain: Path) -> None:
    entry = {"dtype": "F32", "shape": [40, 4], "data_offsets": [0, 640]}
    headers: dict[str, bytes] = {
        "endless header": struct.pack("<Q", 2**63) + b"{}",
        "long header": struct.pack("<Q", 1 << 30) + b"{",
        "past the end": safetensors({"vectors": {**entry, "data_offsets": [0, 10**15]}}),
        "backwards": safetensors({"vectors": {**entry, "data_offsets": [640, 0]}}, bytes(640)),
        "overflow": safetensors({"vectors": {**entry, "shape": [2**40, 2**40]}}, bytes(640)),
        "negative": safetensors({"vectors": {**entry, "shape": [-40, -4]}}, bytes(640)),
        "more rows": safetensors({"vectors": {**entry, "shape": [10**12, 4]}}, bytes(640)),
        "other dtype": safetensors({"vectors": {**entry, "dtype": "F8_E4M3"}}, bytes(640)),
        "no list": safetensors([entry], bytes(640)),
        "other name": safetensors({"rows": entry}, bytes(640)),
        "pickle": pickle.dumps(Exploit()),
    }
    for name, content in headers.items():
        shutil.copytree(plain, tmp_path / name)
        (tmp_path / name / "vectors.safetensors").write_bytes(content)
    configs = {
        "NaN": b'{"format": "bilex-vectors", "version": 1, "words": NaN}',
        "Infinity": b'{"format": "bilex-vectors", "version": Infinity}',
        "deep": b"[" * 1_000_000,
        "bare": b"5",
        "pickled config": pickle.dumps(Exploit()),
        "dim": json.dumps({**json.loads((plain / "config.json").read_text()), "dim": 10**12}).encode(),
    }
    for name, content in configs.items():
        shutil.copytree(plain, tmp_path / name)
        (tmp_path / name / "config.json").write_bytes(content)
    for name, place in {"device": "/dev/zero", "secret": "/etc/passwd", "loop": "vocabulary.txt"}.items():
        shutil.copytree(plain, tmp_path / name)
        (tmp_path / name / "vocabulary.txt").unlink()
        (tmp_path / name / "vocabulary.txt").symlink_to(place)
    shutil.copytree(plain, tmp_path / "fifo")
    (tmp_path / "fifo" / "vectors.safetensors").unlink()
    os.mkfifo(tmp_path / "fifo" / "vectors.safetensors")
    shutil.copytree(plain, tmp_path / "sparse config")
    sparse(tmp_path / "sparse config" / "config.json", 1 << 30)
    found = opened({str(path): "vectors" for path in sorted(tmp_path.iterdir())}, plain)
    assert not [name for name, said in found.items() if said == "read"]
    assert not Path(VICTIM).exists()


def test_lying_headers_are_found_even_where_checksums_are_not_compared(tmp_path: Path, plain: Path) -> None:
    from bilex import BilexError

    entry = {"dtype": "F32", "shape": [10**12, 4], "data_offsets": [0, 640]}
    shutil.copytree(plain, tmp_path / "v")
    (tmp_path / "v" / "vectors.safetensors").write_bytes(safetensors({"vectors": entry}, bytes(640)))
    with pytest.raises(BilexError, match="is cut off or damaged"):
        WordVectors.load(tmp_path / "v", verify=False)


def test_dictionaries_of_all_kinds(tmp_path: Path, plain: Path) -> None:
    laughs = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "ha"}">' for n in range(10))
    head, passwd = '<?xml version="1.0"?>\n', '<!ENTITY x SYSTEM "file:///etc/passwd">'
    files: dict[str, bytes] = {
        "bomb.tmx": f"{head}<!DOCTYPE tmx [{laughs}]>\n<tmx><body><tu>&a9;</tu></body></tmx>".encode(),
        "outside.tmx": f"{head}<!DOCTYPE tmx [{passwd}]>\n<tmx><body><tu>&x;</tu></body></tmx>".encode(),
        "deep.tbx": b"<martif>" + b"<a>" * 100_000,
        "deep.jsonl": b"[" * 5_000_000,
        "number.jsonl": b"1" * 5_000_000,
        "pickle.tsv": pickle.dumps(Exploit()),
        "pickle.jsonl": pickle.dumps(Exploit()),
        "bomb.tsv.gz": gzip.compress(bytes(100 << 20), 1),
        "not.xlsx": b"PK\x03\x04" + bytes(100),
        "zeros.tsv": bytes(1000),
        "nan.jsonl": b'{"source": NaN, "target": Infinity}\n' * 10,
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    sparse(tmp_path / "line.tsv", 20 << 20)
    os.mkfifo(tmp_path / "fifo.tsv")
    kinds = {str(path): "lexicon" for path in sorted(tmp_path.iterdir())}
    found = opened({**kinds, "/dev/zero": "lexicon"}, plain)
    assert not [name for name, said in found.items() if said == "read"]
    assert not Path(VICTIM).exists()


def test_a_sheet_of_wide_rows_takes_little_memory(tmp_path: Path, plain: Path) -> None:
    """Rows of 16,384 cells, of which the file holds three: once kept whole, a gigabyte for this one."""
    Lexicon([("dog", "koira")]).save(tmp_path / "small.xlsx")
    cells = "<c r='A{0}' t='str'><v>w{0}</v></c><c r='B{0}' t='str'><v>x{0}</v></c><c r='XFD{0}'><v>1</v></c>"
    rows = "".join(f"<row r='{n}'>{cells.format(n)}</row>" for n in range(1, 8001)).encode()
    sheet = b"<worksheet xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'><sheetData>"
    with (
        zipfile.ZipFile(tmp_path / "small.xlsx") as small,
        zipfile.ZipFile(tmp_path / "wide.xlsx", "w", zipfile.ZIP_DEFLATED) as wide,
    ):
        for name in small.namelist():
            is_sheet = "worksheets/sheet" in name
            wide.writestr(name, sheet + rows + b"</sheetData></worksheet>" if is_sheet else small.read(name))
    assert opened({str(tmp_path / "wide.xlsx"): "lexicon"}, plain) == {"wide.xlsx": "read"}


def test_models_that_lie(tmp_path: Path, plain: Path) -> None:
    world = planted(60, 6)
    good = tmp_path / "good"
    aligner = get_method("procrustes")(device="cpu")
    Translator(aligner).fit(world.source, world.target, world.pairs(0, 40), calibrate=False).save(good)
    names = sorted(file.relative_to(good).as_posix() for file in good.rglob("*") if file.is_file())
    kinds = {str(good): "model"}
    for name in names:
        for number, content in enumerate((pickle.dumps(Exploit()), b"[" * 100_000, b'{"a": NaN}', b"")):
            folder = tmp_path / f"{name.replace('/', '-')} {number}"
            shutil.copytree(good, folder)
            (folder / name).write_bytes(content)
            kinds[str(folder)] = "model"
    for name, place in {"zero": "/dev/zero", "absolute": "/etc/passwd", "above": "../none"}.items():
        folder = tmp_path / name
        shutil.copytree(good, folder)
        (folder / "config.json").unlink()
        (folder / "config.json").symlink_to(place)
        kinds[str(folder)] = "model"
    for name, place in {"sums absolute": "/etc/passwd", "sums above": "../good/config.json"}.items():
        folder = tmp_path / name
        shutil.copytree(good, folder)
        sums = (folder / "SHA256SUMS").read_text()
        (folder / "SHA256SUMS").write_text(sums + f"{'0' * 64}  {place}\n")
        kinds[str(folder)] = "model"
    found = opened(kinds, plain)
    cards = {f"README.md {number}" for number in range(4)}
    assert {name for name, said in found.items() if said == "read"} - cards == {"good"}
    assert not Path(VICTIM).exists()


def test_a_text_file_of_60_000_dimensions_is_read(tmp_path: Path) -> None:
    rows = np.arange(3 * 60_000, dtype=np.float32).reshape(3, -1) % 7 + 1
    WordVectors(["a", "b", "c"], rows).save(tmp_path / "wide.vec")
    read = WordVectors.load(tmp_path / "wide.vec")
    assert read.dim == 60_000 and np.array_equal(read.vectors, rows)


def test_commands_refuse_pipes_and_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for line in (
        ["info", "/dev/zero"],
        ["convert", str(tmp_path / "pipe"), str(tmp_path / "out.vec")],
        ["align", "/dev/zero", str(tmp_path / "pipe"), "--seeds", "/dev/full", "-o", str(tmp_path / "m")],
    ):
        assert run(line) == 2
        assert "is a pipe or a device; write what comes from it into a file first." in capsys.readouterr().err
