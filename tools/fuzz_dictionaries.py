"""Feed the readers of dictionaries damaged and random input; only `BilexError` may come out.

    python tools/fuzz_dictionaries.py [--inputs 1000000] [--seed 0] [--first 0]

Every input is a small valid file of one of the formats, as bilex or another program writes it, changed in a
few places, or random bytes, and is read in this process by the reader of its format or by whichever the
file is taken for. An input fails the run if its reader raises anything but `BilexError`, takes more than
two seconds of processor time, asks for more than 2 GB, or returns entries that break a promise (whole words
without blanks around them, a report that adds up). The failing input is printed. `--first` goes on where a
run ended.
"""

from __future__ import annotations

import argparse
import gzip
import io
import random
import resource
import signal
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bilex.errors import BilexError
from bilex.format_names import WRITTEN_FORMATS
from bilex.lexicon import Entry
from bilex.lexicon.entries import Dictionary
from bilex.lexicon.formats import format_named, read, write
from bilex.lexicon.reading import Layout, Reading
from fuzzing import check_sentence, guard_memory, memory_folder, mutated, ring, time_limit

TOKENS = (
    *(b"\t", b"\n", b"\r\n", b"\r", b" ", b";", b",", b"|", b'"', b"'", b"#", b"=>", b" @ ", b"\\", b"\0"),
    *(b"<", b">", b"</", b"/>", b"&", b"&amp;", b"&eacute;", b"&#0;", b"&#x10FFFF;", b"&x;", b"<![CDATA["),
    *(
        b"<!DOCTYPE a [<!ENTITY x 'y'>]>",
        b"<!DOCTYPE a SYSTEM 'file:///etc/passwd'>",
        b"<!--",
        b"<?x?>",
        b"<e>",
    ),
    *(b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\xc2\x85", b"1. "),
    *(b'{"', b'":', b"null", b"[]", b"1e999", b'"\\ud800"', b"NaN", b"[" * 50, b"sep=;", b"source\ttarget\n"),
    *(
        b"encoding='utf-7'",
        b"encoding='utf-16'",
        b"encoding='x'",
        b"xml:lang='sv'",
        b"PK\x03\x04",
        b"\x1f\x8b",
    ),
)
RUNS = tuple(
    token * 50_000 for token in (b"/", b" ", b"(", b"<", b"\t", b"a ", b"1. ", b";", b"\\", b'"', b"=>")
)
LAYOUTS = (
    Layout(),
    Layout(),
    Layout(languages=("en", "fi")),
    Layout(languages=("fi", "en"), split=";,"),
    Layout(verdicts=True),
    Layout(columns=("2", "1")),
    Layout(columns=("English", "target")),
    Layout(delimiter=";"),
)
WIKTEXTRACT = (
    b'{"word": "dog", "lang_code": "en", "pos": "n", "translations": [{"code": "fi", "word": "koira"}]}\n'
    b'{"word": "cat", "lang_code": "en", "senses": [{"translations": [{"code": "fi", "word": "kissa"}]}]}\n'
)
MARTIF = (
    b"<tbx type='TBX-Basic' xmlns='urn:iso:std:iso:30042:ed-2'><text><body><conceptEntry>"
    b"<langSec xml:lang='en'><termSec><term>dog</term><termNote type='partOfSpeech'>noun</termNote></termSec>"
    b"</langSec><langSec xml:lang='fi'><termSec><term>koira</term></termSec></langSec></conceptEntry></body>"
    b"</text></tbx>"
)
DIX = (
    b"<dictionary><pardefs><pardef n='x'><e><i>a</i></e></pardef></pardefs><section id='main' "
    b"type='standard'><e r='LR'><p><l>ice<b/>cream<s n='n'/></l><r>j\xc3\xa4\xc3\xa4tel\xc3\xb6</r></p></e>"
    b"<e><i>taxi</i></e><e><par n='x'/></e></section></dictionary>"
)
DICTD_INDEX = b"00databaseinfo\tA\tB\ncat\tY\tZ\ndog\tA\tX\n"
DICTD_ARTICLES = b"dog /d/ <n>\n1. koira, hauva\ncat\nkissa (el\xc3\xa4in)\n"
WEIGHTS = {"xlsx": 0.02, "stardict": 1.5}


@dataclass(frozen=True)
class Target:
    """A dictionary of one format: its files by name, which of them is opened, and which are changed."""

    name: str
    form: str | None
    opened: str
    files: Mapping[str, tuple[bytes, ...]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print how many inputs each reader took and refused."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args(arguments)
    taken, refused = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(dir=memory_folder()) as scratch:
        folder = Path(scratch)
        targets = make_targets(folder / "made")
        weights = [WEIGHTS.get(target.name, 1.0) for target in targets]
        start, before = time.perf_counter(), guard_memory()
        signal.signal(signal.SIGPROF, ring)
        warnings.simplefilter("error")
        for number in range(options.first, options.first + options.inputs):
            rng = random.Random(f"{options.seed}/{number}")
            target = rng.choices(targets, weights)[0]
            changed: dict[str, bytes] = {}
            try:
                changed = lay_out(folder, target, rng)
                attempt(folder / target.opened, target, rng)
                taken[target.name] += 1
            except BilexError as error:
                refused[target.name] += 1
                check_sentence(str(error))
            except BaseException:
                print(f"input {number} of seed {options.seed}, {target.name}:\n{changed!r}", flush=True)
                raise
    seconds = time.perf_counter() - start
    rise = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    for name in [target.name for target in targets]:
        total = taken[name] + refused[name]
        print(f"{name:14} {total:9,} inputs: {taken[name]:9,} read, {refused[name]:9,} refused")
    print(f"{options.inputs:,} inputs in {seconds:.0f} s, no failure; memory rose by {rise:.0f} MB")
    return 0


def lay_out(folder: Path, target: Target, rng: random.Random) -> dict[str, bytes]:
    """Write the files of a dictionary, one of them changed; return what was written."""
    victim = rng.choice(list(target.files))
    written = {}
    for name, seeds in target.files.items():
        if name != victim:
            content = seeds[0]
        elif name.endswith(".xlsx") and rng.random() < 0.9:
            content = changed_inside(rng, seeds[0])
        else:
            content = mutated(rng, seeds, TOKENS)
            if rng.random() < 0.005:
                at = rng.randrange(len(content) + 1)
                content = content[:at] + rng.choice(RUNS) + content[at:]
        if name.endswith(".dz") and rng.random() < 0.5:
            content = gzip.compress(content, 1, mtime=0) if content[:2] != b"\x1f\x8b" else content
        written[name] = content
        (folder / name).write_bytes(content)
    return written


def changed_inside(rng: random.Random, archive: bytes) -> bytes:
    """An archive with one of its files changed, so that its checksums still fit."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(packed, "w") as new:
        victim = rng.choice(old.namelist())
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, mutated(rng, (content,), TOKENS) if name == victim else content)
    return packed.getvalue()


def attempt(path: Path, target: Target, rng: random.Random) -> None:
    """Read a file and check what comes out."""
    form = None if rng.random() < 0.2 else target.form
    with time_limit():
        check_reading(read(path, rng.choice(LAYOUTS), form))


def check_reading(reading: Reading) -> None:
    """What holds for every reading."""
    report = reading.report
    for entry in (*reading.entries, *reading.rejected):
        for word in (entry.source, entry.target):
            assert word and word == word.strip(), word
            word.encode("utf-8")
        assert entry.confidence is None or isinstance(entry.confidence, float)
        entry.note().encode("utf-8")
    assert reading.entries or reading.rejected
    assert report.broken == sum(count for _, count in report.left_out) <= report.lines
    sentence = report.sentence()
    if sentence:
        assert "\n" not in sentence


def make_targets(folder: Path) -> list[Target]:
    """A target for every format, of files that bilex itself writes and of some that others do."""
    entries = [
        Entry("dog", "koira", 0.5, 0.9, 10, 20, True, "noun", "accepted", "a.tsv"),
        Entry("dog", "hauva"),
        Entry("ice", "jää", 0.25),
        Entry("go", "mennä;käydä"),
    ]
    folder.mkdir()
    more = {
        "tbx": (MARTIF,),
        "apertium": (DIX,),
        "tsv": (b"dog\tkoira\ncat\tkissa\tno\n# comment\nhouse\ttalo\n", "a;b\nc;d\n".encode("utf-16")),
        "csv": (b'Nr;English;Suomi\r\n1;dog;"koira; hauva"\r\n2;cat;kissa\r\n', b"sep=;\na;b\nc;d\n"),
    }
    targets = []
    files: dict[str, tuple[bytes, ...]]
    for name in WRITTEN_FORMATS:
        suffix = (format_named(name).suffixes or (".csv",))[0]
        path = folder / f"{name}{suffix}"
        write(path, Dictionary(entries, ("en", "fi")), name)
        if name == "stardict":
            files = {
                f"{name}{end}": ((folder / f"{name}{end}").read_bytes(),)
                for end in (".ifo", ".idx", ".dict.dz")
            }
            files["stardict.ifo"] += (files["stardict.ifo"][0].replace(b"description", b"x"),)
        else:
            files = {path.name: (path.read_bytes(), *more.get(name, ()))}
        targets.append(Target(name, name, path.name, files))
    targets.append(Target("wiktextract", "wiktextract", "w.jsonl", {"w.jsonl": (WIKTEXTRACT,)}))
    dictd = {"d.index": (DICTD_INDEX,), "d.dict.dz": (DICTD_ARTICLES,)}
    targets.append(Target("dictd", "dictd", "d.index", dictd))
    everything = tuple(seed for target in targets for seeds in target.files.values() for seed in seeds)
    targets.append(Target("sniffed", None, "sniffed.txt", {"sniffed.txt": everything}))
    return targets


if __name__ == "__main__":
    raise SystemExit(main())
