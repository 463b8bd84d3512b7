"""Reading and writing files: whole or not at all, and never over what a command may not replace.

Files and folders are written under a temporary name beside their place. A temporary has a lock that the
system releases when its process ends; the next writer in that folder removes what nobody holds. All checks
and writers raise a `BilexError` that says in one sentence what is wrong with which path.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Collection, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

from safetensors import SafetensorError

from bilex.core.errors import BilexError
from bilex.core.locks import LOCK, WAIT_SECONDS, hidden_name, one_at_a_time, try_lock, turn_lock

OwnFiles = Callable[[Path], Collection[str]]

NEW, ASIDE = ".bilex-tmp", ".bilex-old"
LISTING = "SHA256SUMS"
FIRST_MANIFEST = "bilex-files.json"  # what earlier versions wrote in folders that bilex keeps for itself
_SHOWN_NAME = 60
_AT_FDCWD, _EXCHANGE = -100, 2  # of Linux's renameat2 and macOS's renamex_np
_NOT_OFFERED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_NUMPY_WROTE_LESS = re.compile(r"\d+ requested and \d+ written")  # it gives no number
_LARGEST_JSON = 256 << 20
_KIND_LINE = b"# bilex-"
_REVIEWS = re.compile(r"\.review\.sqlite(-wal|-shm|-journal)?$", re.IGNORECASE)
_SQLITE, _SQLITE_PARTS = b"SQLite format 3\0", re.compile("(.+)-(?:wal|shm|journal)")
_BESIDE_MODELS = (".previous", ".retrained")
_inputs: ContextVar[set[Path] | None] = ContextVar("inputs", default=None)


@contextlib.contextmanager
def protected_inputs() -> Iterator[None]:
    """For one command: refuse to write any file that it reads (see `check_ordinary`) in this thread."""
    token = _inputs.set(set())
    try:
        yield
    finally:
        _inputs.reset(token)


def check_name(path: str | Path) -> None:
    """Make sure that a path is one that the system can look up; nothing need be there."""
    try:
        os.lstat(path)
    except ValueError as error:
        raise BilexError(f"{str(path)!r}: holds a NUL character; check the name.") from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise BilexError(
                f"{Path(path).name[:_SHOWN_NAME]}…: cannot be read or written (too long a name); check it."
            ) from error


def check_output(path: str | Path, *, folder: bool = False) -> None:
    """Make sure that writing a file, or a folder, destroys no input of this command and no part of a model.

    All writers of this module call it. Inside a folder that is being made everything may be written.
    """
    check_name(path)
    with written_plainly(Path(path)):
        place = Path(path).resolve()
        for outer in place.parents:
            if outer.name.endswith(NEW):
                return
            if _is_ours(outer):
                raise BilexError(f"{path}: is inside {outer}, which bilex made; choose another name.")
        beside = place.suffix in _BESIDE_MODELS and (not folder or _inputs.get() is not None)
        part = _SQLITE_PARTS.fullmatch(place.name)
        fault = ""
        if place.name.endswith((NEW, ASIDE, LOCK)):
            fault = "is a name of temporary files of bilex"
        elif _REVIEWS.search(place.name):
            fault = "is the name of a review database"
        elif beside and _is_ours(place.with_suffix("")):
            fault = f"belongs to the model {place.stem}"
        elif not folder and (_is_sqlite(place) or (part and _is_sqlite(place.with_name(part[1])))):
            fault = "is a database, which is not replaced"
        if fault:
            raise BilexError(f"{path}: {fault}; choose another name.")
        check_not_an_input(path, *(_inputs.get() or ()))


def _is_ours(folder: Path) -> bool:
    """Whether a folder is a model, vectors, an encoder or a checkpoint that bilex wrote."""
    if (folder / FIRST_MANIFEST).is_file():
        return True
    with contextlib.suppress(OSError), (folder / LISTING).open("rb") as listed:
        if listed.read(len(_KIND_LINE)) == _KIND_LINE:
            return True
    config = folder / "config.json"
    try:
        found = read_json(config) if config.is_file() else None
    except BilexError:
        return False
    return isinstance(found, dict) and str(found.get("format")).startswith("bilex-")


def _is_sqlite(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


@contextlib.contextmanager
def written_plainly(path: Path) -> Iterator[None]:
    """Turn the operating system's refusal to write `path` into one sentence."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        if _error_number(error) in _DISK_FULL:
            raise BilexError(
                f"{path}: the disk is full; nothing was written there; free some space and run again."
            ) from error
        raise BilexError(f"{path}: cannot be written ({getattr(error, 'strerror', '') or error}).") from error


def _error_number(error: OSError | SafetensorError) -> int | None:
    """The operating system's number of an error; safetensors gives it only in its message."""
    if isinstance(error, OSError):
        return errno.ENOSPC if _NUMPY_WROTE_LESS.search(str(error)) else error.errno
    stated = re.search(r"os error (\d+)", str(error))
    return int(stated[1]) if stated else None


@contextlib.contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that takes its name when the block ends well.

    After an error or Ctrl-C the temporary file is removed and an earlier `path` is as it was; after a power
    cut the old or the new content is there. What a link points to is replaced, not the link.
    """
    check_output(path)
    path = _followed(Path(path))
    with written_plainly(path):
        if path.exists() and not path.is_file():
            kind = "a folder" if path.is_dir() else "a device or a pipe"
            raise BilexError(f"{path}: is {kind}, a file is to be written there; choose another name.")
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_file(path) as temporary:
            yield temporary
            _complete(temporary)
            temporary.replace(path)
            sync_folder(path.parent)


@contextlib.contextmanager
def atomic_folder(path: str | Path, *, own_files: OwnFiles) -> Iterator[Path]:
    """Yield a temporary folder beside `path` that takes its name when the block ends well.

    At any moment, also after a kill or a power cut, `path` is the old folder or the new one, each whole. An
    earlier folder is replaced only if it holds nothing but its `own_files`, those that its own marker says
    this format wrote.
    """
    check_output(path, folder=True)
    path = _followed(Path(path))
    check_replaceable(path, own_files)
    with written_plainly(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(path) as temporary:
            yield temporary
            _complete(temporary)
            with one_at_a_time(path):  # another process may end with the same name
                check_replaceable(path, own_files)
                _put_in_place(temporary, path)
            sync_folder(path.parent)


@contextlib.contextmanager
def temporary_file(path: Path) -> Iterator[Path]:
    """An empty file beside `path`, removed at the end of the block unless it was renamed."""
    with _temporary(path) as temporary:
        temporary.touch(mode=0o600, exist_ok=False)
        yield temporary


@contextlib.contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """An empty folder beside `path`, removed at the end of the block unless it was renamed."""
    with _temporary(path) as temporary:
        temporary.mkdir(mode=0o700)
        yield temporary


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A new name beside `path` whose lock this process holds; what has it at the end is removed."""
    remove_abandoned(path.parent)
    temporary = path.with_name(f"{hidden_name(path)}{secrets.token_hex(4)}{NEW}")
    with try_lock(temporary.with_suffix(LOCK), WAIT_SECONDS):
        try:
            yield temporary
        finally:
            _remove(temporary)


def remove_abandoned(folder: Path) -> None:
    """Remove the temporaries and locks of dead processes from a folder.

    An old folder that was put aside stays as long as nothing has its first name again.
    """
    left = {end: _hidden(folder, end) for end in (NEW, LOCK, ASIDE)}
    for temporary in left[NEW]:
        with contextlib.suppress(OSError), try_lock(temporary.with_suffix(LOCK)) as held:
            if held:
                _remove(temporary)
    for lock in left[LOCK]:
        with contextlib.suppress(OSError), try_lock(lock):
            pass  # it is removed at the end of the block
    there = {hidden_name(path): path for path in folder.iterdir()} if left[ASIDE] else {}
    for aside in left[ASIDE]:
        path = there.get(aside.stem.rpartition(".")[0] + ".")
        if path is not None:
            with contextlib.suppress(OSError), try_lock(turn_lock(path)) as held:
                if held:
                    _remove(aside)


def restore(path: Path) -> None:
    """Move back what a killed process had put aside from `path`, if there is nothing at `path` now."""
    check_name(path)
    if os.path.lexists(path):
        return
    for aside in _hidden(path.parent, ASIDE, hidden_name(path)):
        with contextlib.suppress(OSError), try_lock(turn_lock(path)) as held:
            if held is not False and not os.path.lexists(path):
                aside.rename(path)


def _hidden(folder: Path, end: str, start: str = ".") -> list[Path]:
    """The entries of a folder whose names begin and end so."""
    with contextlib.suppress(OSError):
        return sorted(p for p in folder.iterdir() if p.name.startswith(start) and p.name.endswith(end))
    return []


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def exchange(one: Path, other: Path) -> bool:
    """Let two paths change places in one step; False where the system or the file system cannot."""
    call = _exchanging_call()
    if call is None:
        return False
    if call(os.fsencode(one), os.fsencode(other)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_OFFERED:
        return False
    raise OSError(number, os.strerror(number), str(other))


@functools.cache
def _exchanging_call() -> Callable[[bytes, bytes], int] | None:
    """The system's call that exchanges two paths; None where there is none."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # Windows has no library without a name
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "linux":
            renameat2 = library.renameat2
            return lambda one, other: int(renameat2(_AT_FDCWD, one, _AT_FDCWD, other, _EXCHANGE))
        if sys.platform == "darwin":
            renamex_np = library.renamex_np
            return lambda one, other: int(renamex_np(one, other, _EXCHANGE))
    return None


def sync_file(path: Path) -> None:
    """Wait until a file's content is on the disk."""
    _sync(path, os.O_RDWR)


def sync_folder(path: Path) -> None:
    """Wait until a folder's list of names is on the disk; nothing where folders cannot be synced."""
    with contextlib.suppress(OSError):  # Windows opens no folders, some network disks sync none
        _sync(path, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def link_or_copy(source: Path, destination: Path) -> None:
    """The same file under a second name: a link where the disk can do that, else a copy."""
    try:
        os.link(source, destination)
    except OSError:
        shutil.copy2(source, destination)


def check_replaceable(path: Path, own_files: OwnFiles) -> None:
    """Make sure that a folder can be written at a path without loss of anything but `own_files`."""
    check_output(path, folder=True)
    restore(path)
    with written_plainly(path):
        if not path.exists():
            return
        if not path.is_dir():
            raise BilexError(f"{path}: is a file, a folder is to be written there; choose another name.")
        found = []  # everything but folders, by its path from there; links count as files
        for inner, folders, files in os.walk(path):
            links = [name for name in folders if Path(inner, name).is_symlink()]
            found += [Path(inner, name).relative_to(path).as_posix() for name in (*files, *links)]
        ours = own_files(path) if found else ()
    foreign = min((name for name in found if name not in ours), default=None)
    if foreign is not None and not ours:
        raise BilexError(f"{path}: is a folder with other things in it ('{foreign}'); choose another name.")
    if foreign is not None:
        raise BilexError(
            f"{path}: holds '{foreign}', which bilex did not write there; move it away or choose another "
            "name."
        )


def check_writable(path: str | Path) -> None:
    """Make sure, before the work, that a file or folder can be written at a path."""
    check_name(path)
    path = _followed(Path(path))
    check_output(path, folder=not path.is_file())
    with written_plainly(path):
        with contextlib.suppress(FileNotFoundError):
            path.lstat()  # refuses names that are too long, and parents that are files
        parent = path.parent
        while not parent.exists():
            parent = parent.parent
        with temporary_file(parent / path.name):
            pass


def check_not_an_input(output: str | Path, *inputs: str | Path) -> None:
    """Make sure that a result does not overwrite what it is made from, under this or another name."""
    written = Path(output).resolve()
    for given in map(Path, inputs):
        read = given.resolve()
        if written == read or (written.exists() and read.exists() and written.samefile(read)):
            raise BilexError(f"{output}: is an input of this command; choose another name for the output.")


def _followed(path: Path) -> Path:
    """The place that a link points to, or the path itself."""
    with written_plainly(path):
        return path.resolve() if path.is_symlink() else path


def _put_in_place(new: Path, path: Path) -> None:
    """Put folder `new` in the place of `path`; an older folder is at `new` or gone afterwards."""
    if not path.exists():
        new.replace(path)
        return
    if exchange(new, path):
        return
    aside = path.with_name(f"{hidden_name(path)}{secrets.token_hex(4)}{ASIDE}")  # see `restore`
    try:
        path.replace(aside)
        new.replace(path)
    finally:
        if not path.exists():  # an error or Ctrl-C came between the two
            aside.replace(path)
    shutil.rmtree(aside, ignore_errors=True)


def _complete(temporary: Path) -> None:
    """Give a private file, or all of a folder, the modes of the user's umask, and sync it to the disk."""
    mask = os.umask(0)
    os.umask(mask)
    for path in (temporary, *temporary.rglob("*")):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)
        (sync_folder if path.is_dir() else sync_file)(path)


def write_text(path: str | Path, text: str) -> None:
    """Write `text` as UTF-8, atomically."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically."""
    write_text(path, json_text(value))


def json_text(value: Any) -> str:
    """Indented JSON that every reader takes: a number that is not finite becomes null."""
    return json.dumps(_finite(value), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """Plain values for JSON: numpy's numbers and arrays as Python's, NaN and infinities as None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return value if isinstance(value, (str, int, bool)) or value is None else str(value)


def read_json(path: str | Path) -> Any:
    """Read a JSON file; one that is missing, too large or too deep to be ours, or not JSON is an error."""
    path = Path(path)
    try:
        return json.loads(read_small(path, _LARGEST_JSON).decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        what = "nested too deep" if isinstance(error, RecursionError) else error
        raise BilexError(f"{path}: is not valid JSON ({what}); restore it or make it again.") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def check_ordinary(path: str | Path) -> None:
    """Make sure that a path which is about to be read is a file or folder, if there is anything at it.

    Pipes and devices never end or never begin, and readers look at a file more than once. A file becomes one
    that the present command may not write (`protected_inputs`).
    """
    check_name(path)
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return  # whoever opens it says why it cannot be read
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise BilexError(f"{path}: is a pipe or a device; write what comes from it into a file first.")
    inputs = _inputs.get()
    if inputs is not None and stat.S_ISREG(mode):
        inputs.add(Path(path))


@contextlib.contextmanager
def opened(path: Path, advice: str = "") -> Iterator[BinaryIO]:
    """A file for reading; what the system refuses meanwhile becomes one sentence that ends in some advice."""
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        reason = f"{path}: cannot be read ({error.strerror or error})"
        raise BilexError(f"{reason}; {advice}." if advice else f"{reason}.") from error


def read_small(path: Path, largest: int) -> bytes:
    """The bytes of an ordinary file that may not be larger than so many bytes."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise BilexError(f"{path}: is not an ordinary file; put the file itself there.")
        if found.st_size > largest:
            raise BilexError(f"{path}: has {found.st_size:,} bytes, which is too large for such a file.")
        return path.read_bytes()
    except OSError as error:
        raise BilexError(f"{path}: cannot be read ({error.strerror or error}).") from error


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file, in hexadecimal; OSError for what cannot be read or is no ordinary file."""
    if not Path(path).is_file() and Path(path).exists():
        raise OSError(errno.EINVAL, "not an ordinary file", str(path))
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
