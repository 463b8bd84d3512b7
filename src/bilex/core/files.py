"""Reading and writing files: whole or not at all, and never over what a command may not replace.

Files and folders are written under a temporary name beside their destination. A temporary has a lock, which
the system releases when its process ends; the next writer in that folder removes temporaries without one. All
checks and writers raise a `BilexError` that says in one sentence what is wrong with which path.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import io
import json
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
from bilex.core.locks import LOCK, WAIT_SECONDS, hidden_name, one_at_a_time, replacement_lock, try_lock
from bilex.core.typed_json import plain

OwnFiles = Callable[[Path], Collection[str]]

NEW, ASIDE = ".bilex-tmp", ".bilex-old"
MANIFEST = "SHA256SUMS"
FIRST_MANIFEST = "bilex-files.json"  # what earlier versions wrote instead, except in models
_SHOWN_NAME = 60
_AT_FDCWD, _EXCHANGE = -100, 2  # of Linux's renameat2 and macOS's renamex_np
_CANNOT_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
# numpy reports a full disk without an error number, and safetensors in its message only
_DISK_FULL_TEXT = re.compile(rf"\d+ requested and \d+ written|os error ({'|'.join(map(str, _DISK_FULL))})\b")
_LARGEST_JSON = 256 << 20
_REVIEWS = re.compile(r"\.review\.sqlite(-wal|-shm|-journal)?$", re.IGNORECASE)
_SQLITE, _SQLITE_PART = b"SQLite format 3\0", re.compile("(.+)-(?:wal|shm|journal)")
_BESIDE_MODELS = (".previous", ".retrained")
_inputs: ContextVar[set[Path] | None] = ContextVar("inputs", default=None)


@contextlib.contextmanager
def protected_inputs() -> Iterator[None]:
    """For one command: refuse to write any file that it reads (see `check_input`) in this thread."""
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
            name = Path(path).name[:_SHOWN_NAME]
            raise BilexError(f"{name}…: cannot be read or written (too long a name); check it.") from error


def check_input(path: str | Path) -> None:
    """Make sure that a path which is about to be read is a file or folder, if there is anything at it.

    Pipes and devices may never end, and readers look at a file more than once. The command that reads a file
    may not write it (`protected_inputs`).
    """
    check_name(path)
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return  # opening it reports why it cannot be read
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise BilexError(f"{path}: is a pipe or a device; write what comes from it into a file first.")
    inputs = _inputs.get()
    if inputs is not None and stat.S_ISREG(mode):
        inputs.add(Path(path))


def check_output(path: str | Path, *, folder: bool = False) -> None:
    """Make sure that writing a file, or a folder, destroys no input of this command and no part of a model.

    All writers of this module call it. Inside a folder that is being made everything may be written.
    """
    check_name(path)
    if not Path(path).name:  # "." and "/": nothing can be made beside them and renamed
        raise BilexError(f"{path}: is a folder without a name; choose another name for the output.")
    with write_errors(path):
        place = Path(path).resolve()
        for outer in place.parents:
            if outer.name.endswith(NEW):
                return
            if _is_ours(outer):
                raise BilexError(f"{path}: is inside {outer}, which bilex made; choose another name.")
        beside = place.suffix in _BESIDE_MODELS and (not folder or _inputs.get() is not None)
        part = _SQLITE_PART.fullmatch(place.name)
        database = place.with_name(part[1]) if part else place
        fault = ""
        if place.name.endswith((NEW, ASIDE, LOCK)):
            fault = "is a name of temporary files of bilex"
        elif _REVIEWS.search(place.name):
            fault = "is the name of a review database"
        elif beside and _is_ours(place.with_suffix("")):
            fault = f"belongs to the model {place.stem}"
        elif not folder and _starts_with(database, _SQLITE):
            fault = "is a database, which is not replaced"
        if fault:
            raise BilexError(f"{path}: {fault}; choose another name.")
        check_not_an_input(path, *(_inputs.get() or ()))


def check_not_an_input(output: str | Path, *inputs: str | Path) -> None:
    """Make sure that an output overwrites no input, under this or another name."""
    written = Path(output).resolve()
    for given in map(Path, inputs):
        read = given.resolve()
        if written == read or (written.exists() and read.exists() and written.samefile(read)):
            raise BilexError(f"{output}: is an input of this command; choose another name for the output.")


def check_writable(path: str | Path) -> None:
    """Make sure, before the work, that a file or folder can be written at a path."""
    path = _link_target(path)
    check_output(path, folder=not path.is_file())
    with write_errors(path):
        parent = next(folder for folder in path.parents if folder.exists())
        with temporary_path(parent / path.name):
            pass


def check_replaceable(path: Path, own_files: OwnFiles) -> None:
    """Make sure that a folder can be written at a path without loss of anything but `own_files`."""
    check_output(path, folder=True)
    restore(path)
    with write_errors(path):
        if not path.exists():
            return
        if not path.is_dir():
            raise BilexError(f"{path}: is a file, a folder is to be written there; choose another name.")
        found = set()  # everything but folders, by its path from there; links count as files
        for inner, folders, files in os.walk(path):  # rglob would fail if another process replaces the folder
            links = [name for name in folders if Path(inner, name).is_symlink()]
            found |= {Path(inner, name).relative_to(path).as_posix() for name in (*files, *links)}
        ours = own_files(path) if found else ()
    foreign = min(found.difference(ours), default=None)
    if foreign is not None and not ours:
        raise BilexError(f"{path}: is a folder with other things in it ('{foreign}'); choose another name.")
    if foreign is not None:
        advice = "move it away or choose another name"
        raise BilexError(f"{path}: holds '{foreign}', which bilex did not write there; {advice}.")


def _is_ours(folder: Path) -> bool:
    """Whether a folder is a model, vectors, an encoder or a checkpoint that bilex wrote."""
    with contextlib.suppress(OSError):  # a list that cannot be read is not ours
        if (folder / FIRST_MANIFEST).is_file() or _starts_with(folder / MANIFEST, b"# bilex-"):
            return True
    return stored_format(folder).startswith("bilex-")


def stored_format(folder: Path) -> str:
    """What the config.json of a folder says that the folder is; empty if it says nothing."""
    config = folder / "config.json"
    try:
        found = read_json(config) if config.is_file() else None
    except BilexError:
        return ""
    return str(found.get("format")) if isinstance(found, dict) else ""


def _starts_with(path: Path, head: bytes) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(head)) == head


@contextlib.contextmanager
def write_errors(path: str | Path) -> Iterator[None]:
    """Turn the operating system's refusal to write `path` into one sentence."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        if getattr(error, "errno", None) in _DISK_FULL or _DISK_FULL_TEXT.search(str(error)):
            raise BilexError(
                f"{path}: the disk is full; nothing was written there; free some space and run again."
            ) from error
        raise BilexError(f"{path}: cannot be written ({getattr(error, 'strerror', '') or error}).") from error


@contextlib.contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that is renamed to it when the block ends without an error.

    After an error or Ctrl-C the temporary file is removed and an earlier `path` is as it was; after a power
    cut the old or the new content is there. What a link points to is replaced, not the link.
    """
    path = _link_target(path)
    check_output(path)
    with write_errors(path):
        if path.exists() and not path.is_file():
            kind = "a folder" if path.is_dir() else "a device or a pipe"
            raise BilexError(f"{path}: is {kind}, a file is to be written there; choose another name.")
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_path(path) as temporary:
            yield temporary
            _complete(temporary)
            temporary.replace(path)
            sync(path.parent)


@contextlib.contextmanager
def atomic_folder(path: str | Path, *, own_files: OwnFiles) -> Iterator[Path]:
    """Yield a temporary folder beside `path` that is renamed to it when the block ends without an error.

    At any moment, also after a kill or a power cut, `path` is the old folder or the new one, each whole. An
    earlier folder is replaced only if it holds nothing but its `own_files`, those that its manifest says this
    format wrote.
    """
    path = _link_target(path)
    check_replaceable(path, own_files)
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_path(path, folder=True) as temporary:
            yield temporary
            _complete(temporary)
            with one_at_a_time(path):  # another process may end with the same name
                check_replaceable(path, own_files)
                _put_in_place(temporary, path)
            sync(path.parent)


@contextlib.contextmanager
def temporary_path(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """An empty file or folder beside `path`, locked, and removed at the end unless it was renamed."""
    remove_abandoned(path.parent)
    temporary = path.with_name(f"{hidden_name(path)}{secrets.token_hex(4)}{NEW}")
    with try_lock(temporary.with_suffix(LOCK), WAIT_SECONDS):
        try:
            if folder:
                temporary.mkdir(mode=0o700)
            else:
                temporary.touch(mode=0o600, exist_ok=False)
            yield temporary
        finally:
            _remove(temporary)


def remove_abandoned(folder: Path) -> None:
    """Remove the temporaries and locks of dead processes from a folder.

    An old folder that was put aside stays until its own name exists again.
    """
    temporaries, locks, put_aside = (_hidden(folder, end) for end in (NEW, LOCK, ASIDE))
    locked = {path: path.with_suffix(LOCK) for path in temporaries}
    there = {hidden_name(path): path for path in folder.iterdir()} if put_aside else {}
    for aside in put_aside:
        path = there.get(aside.stem.rpartition(".")[0] + ".")
        if path is not None:
            locked[aside] = replacement_lock(path)
    for path, lock in locked.items():
        with contextlib.suppress(OSError), try_lock(lock) as held:
            if held:
                _remove(path)
    for lock in locks:
        with contextlib.suppress(OSError), try_lock(lock):
            pass  # it is removed at the end of the block


def restore(path: Path) -> None:
    """Move back what a killed process had put aside from `path`, if there is nothing at `path` now."""
    check_name(path)
    if os.path.lexists(path):
        return
    for aside in _hidden(path.parent, ASIDE, hidden_name(path)):
        with contextlib.suppress(OSError), try_lock(replacement_lock(path)) as held:
            if held is not False and not os.path.lexists(path):
                aside.rename(path)


def _hidden(folder: Path, end: str, start: str = ".") -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(p for p in folder.iterdir() if p.name.startswith(start) and p.name.endswith(end))
    return []


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _put_in_place(new: Path, path: Path) -> None:
    """Move folder `new` to `path`; an older folder is at `new` or gone afterwards."""
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


def exchange(one: Path, other: Path) -> bool:
    """Exchange two paths in one step; False where the system or the file system cannot."""
    a, b = os.fsencode(one), os.fsencode(other)
    calls: dict[str, tuple[str, tuple[Any, ...]]] = {
        "linux": ("renameat2", (_AT_FDCWD, a, _AT_FDCWD, b, _EXCHANGE)),
        "darwin": ("renamex_np", (a, b, _EXCHANGE)),
    }
    name, arguments = calls.get(sys.platform, ("", ()))
    call = getattr(ctypes.CDLL(None, use_errno=True), name, None) if name else None
    if call is None:  # another system, or an older C library
        return False
    if call(*arguments) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(other))


def _complete(temporary: Path) -> None:
    """Give a private file, or all of a folder, the modes of the user's umask, and sync it to the disk."""
    mask = os.umask(0)
    os.umask(mask)
    for path in (temporary, *temporary.rglob("*")):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)
        sync(path)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names where that can be synced, is on the disk."""
    try:
        descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        if not path.is_dir():  # Windows opens no folders, some network disks sync none
            raise


def link_or_copy(source: Path, destination: Path) -> None:
    """The same file under a second name: a link where the disk can do that, else a copy."""
    try:
        os.link(source, destination)
    except OSError:
        shutil.copy2(source, destination)


def _link_target(path: str | Path) -> Path:
    check_name(path)
    with write_errors(path):
        return Path(path).resolve() if Path(path).is_symlink() else Path(path)


def write_text(path: str | Path, text: str) -> None:
    """Write `text` as UTF-8, atomically."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically."""
    write_text(path, json_text(value))


def json_text(value: Any) -> str:
    """Indented JSON that every reader accepts: a number that is not finite becomes null."""
    return json.dumps(plain(value), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


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


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """An ordinary file for reading; the system's errors become one sentence."""
    try:
        with _open_ordinary(path) as file:
            yield file
    except OSError as error:
        raise BilexError(f"{path}: cannot be read ({error.strerror or error}).") from error


def _open_ordinary(path: Path) -> io.BufferedReader:
    if not path.is_file() and path.exists():
        raise OSError(errno.EINVAL, "not an ordinary file", str(path))
    return path.open("rb")


def read_small(path: Path, largest: int) -> bytes:
    """The bytes of an ordinary file of at most `largest` bytes."""
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > largest:
            raise BilexError(f"{path}: has {size:,} bytes, which is too large for such a file.")
        return file.read()


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file, in hexadecimal; OSError for what cannot be read or is no ordinary file."""
    with _open_ordinary(Path(path)) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
