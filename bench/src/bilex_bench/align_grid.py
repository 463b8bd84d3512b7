"""Models of many language pairs: one fit per pair, here or on a cluster, into one folder of models.

Nothing but files remembers what is done. A worker writes the row of the coverage table, then the model, so
a pair with both is finished; the next run does the rest, and a pair that was interrupted goes on from its
checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from bilex.aligners import get_method
from bilex.core.errors import BilexError, nearest_name
from bilex.core.files import read_json, write_json
from bilex.core.progress import SILENT, Progress
from bilex.fit import DEFAULT_METHOD
from bilex.model import Translator
from bilex.model.storage import holds_model
from bilex_bench.datasets.folder import ALL, LANGUAGE, DataFolder, Dictionaries, PairFiles
from bilex_bench.results import Result, Setup, now
from bilex_bench.work import FamilyOutOfMemoryError, is_out_of_memory, sentence_of
from bilex_bench.workplace import Workplace, WorkPlan

ROWS, CHECKPOINTS = "rows", "unfinished"
_GRID = "grid"
_KEYS = {
    *("pairs", "languages", "vectors", "seeds", "output", "device"),
    *("method", "preset", "settings", "limit", "lm", "random_seed"),
}


@dataclass(frozen=True, kw_only=True)
class ModelPlan(WorkPlan):
    """A plan whose workers write models."""

    models: str  # the folder of models, one per pair; every machine must reach it by this path

    def run_family(
        self,
        setups: Sequence[Setup],
        workplace: Workplace,
        *,
        progress: Progress = SILENT,
        attempt: int = 1,
        last_attempt: bool = True,
    ) -> Iterator[Result]:
        """Fit and save the model of each pair; what goes wrong becomes a failed result."""
        for setup in setups:
            began, clock = now(), time.monotonic()
            try:
                self._fit(setup, workplace, progress)
            except Exception as error:
                if is_out_of_memory(error) and not last_attempt:
                    raise FamilyOutOfMemoryError(sentence_of(error)) from error
                yield Result(
                    setup=setup, status="failed", error=sentence_of(error), started=began, attempts=attempt
                )
            else:
                spent = {"fit": round(time.monotonic() - clock, 2)}
                yield Result(setup=setup, status="done", seconds=spent, started=began, attempts=attempt)

    def _fit(self, setup: Setup, workplace: Workplace, progress: Progress) -> None:
        started = time.monotonic()
        source, target = workplace.vocabularies(setup, progress)
        seeds = self.folders[_GRID].seeds(setup.pair, ALL)
        aligner = get_method(setup.method)(device=workplace.device, seed=setup.seed)
        aligner.set_params(**setup.settings)
        checkpoint = Path(self.work) / CHECKPOINTS / setup.pair
        translator = Translator(aligner, encoder=setup.lm).fit(
            source, target, seeds, languages=setup.languages, checkpoint=checkpoint, progress=progress
        )
        made = translator.provenance
        expected = {side: made.expectation.of(side)[0] for side in made.expectation.words}
        row = {
            "key": self._key(setup),
            "source_words": len(source),
            "target_words": len(target),
            "seed_pairs": made.seed_pairs,
            "seed_pairs_covered": made.seed_pairs_covered,
            "expected": expected,
            "seconds": round(time.monotonic() - started, 1),
        }
        write_json(self.row(setup.pair), row)
        translator.save(Path(self.models) / setup.pair)
        shutil.rmtree(checkpoint, ignore_errors=True)

    def _key(self, setup: Setup) -> str:
        """A name for everything that a model depends on: settings, seeds and vector files."""
        folder = self.folders[_GRID]
        files = [folder.vectors_path(code) for code in setup.languages]
        seeds = [hashlib.sha256(repr(folder.seeds(setup.pair, ALL).pairs).encode()).hexdigest()]
        content = [setup.key, *seeds, *([str(file), file.stat().st_size] for file in files)]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]

    def row(self, pair: str) -> Path:
        """Where the row of a pair is kept."""
        return Path(self.work) / ROWS / f"{pair}.json"

    def finished(self, setup: Setup) -> dict[str, Any] | None:
        """The row of a pair whose model is there; None where it is yet to be made."""
        model = Path(self.models) / setup.pair
        if not holds_model(model):
            return None
        found = read_json(self.row(setup.pair)) if self.row(setup.pair).is_file() else {}
        if not isinstance(found, dict) or found.get("key") != self._key(setup):
            raise BilexError(
                f"{model}: is a model that was made with other settings or files; move it away, or give "
                "another folder with -o."
            )
        return found


@dataclass(frozen=True)
class PairsFile:
    """What a file of pairs asks for."""

    folder: DataFolder  # the vectors of all languages, and the seeds of all pairs that have some
    setups: list[Setup]  # one per pair
    without_seeds: list[str]  # pairs of the languages that no seed dictionary was found for
    output: str  # the folder for the models, as the file names it
    device: str  # "auto", "cpu" or "cuda"

    @classmethod
    def read(cls, path: Path) -> PairsFile:
        """Read a file of pairs, and look for the files that it names."""
        asked, home = _asked(path), path.absolute().parent
        listed = asked.get("pairs") or [f"{a}-{b}" for a, b in combinations(asked["languages"], 2)]
        dictionaries: dict[str, PairFiles] = {}
        pairs, without = [], []
        for pair in dict.fromkeys(listed):
            source, _, target = pair.partition("-")
            files = {name: home / asked["seeds"].format(name) for name in (pair, f"{target}-{source}")}
            stored = next((name for name, file in files.items() if file.is_file()), None)
            if stored is not None:
                pairs.append(pair)
                dictionaries[stored] = PairFiles({ALL: files[stored]})
            elif "pairs" in asked:
                raise BilexError(f"{path}: {pair} has no seed dictionary; looked for {files[pair]}.")
            else:
                without.append(pair)
        if not pairs:
            raise BilexError(f"{path}: no pair has a seed dictionary; looked for {home / asked['seeds']}.")
        codes = dict.fromkeys(code for pair in pairs for code in pair.split("-"))
        vectors = {code: home / asked["vectors"].format(code) for code in codes}
        missing = [(code, file) for code, file in vectors.items() if not file.exists()]
        if missing:
            code, file = missing[0]
            raise BilexError(f"{path}: there are no vectors of '{code}'; looked for {file}.")
        folder = DataFolder(_GRID, home, Dictionaries(home, "plain", dictionaries), vectors, "")
        preset = {"preset": asked["preset"]} if "preset" in asked else {}
        common = {
            "dataset": _GRID,
            "seeds": ALL,
            "method": asked.get("method", DEFAULT_METHOD),
            "settings": {**preset, **asked.get("settings", {})},
            "limit": asked.get("limit", 200_000),
            "seed": asked.get("random_seed", 0),
            "lm": asked.get("lm"),
        }
        get_method(common["method"])().set_params(**common["settings"])
        setups = [Setup(pair=pair, **common) for pair in pairs]
        output = str(home / asked.get("output", "models"))
        return cls(folder, setups, without, output, asked.get("device", "auto"))


def _asked(path: Path) -> dict[str, Any]:
    """The content of a file of pairs."""
    try:
        asked = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BilexError(f"{path}: cannot be read as TOML ({error}).") from error
    for key in asked:
        if key not in _KEYS:
            raise BilexError(f"{path}: there is no key '{key}'.{nearest_name(key, _KEYS)}")
    for key, example in (("vectors", "vectors/{}.vec"), ("seeds", "seeds/{}.tsv")):
        if "{}" not in str(asked.get(key, "")):
            raise BilexError(f'{path}: {key} is missing, or has no {{}}; write such as {key} = "{example}".')
    if ("pairs" in asked) == ("languages" in asked):
        raise BilexError(f'{path}: give either pairs = ["en-fi", ...] or languages = ["en", "fi", ...].')
    named = asked.get("pairs", asked.get("languages"))
    form = rf"{LANGUAGE}-{LANGUAGE}" if "pairs" in asked else LANGUAGE
    if not isinstance(named, list) or not all(re.fullmatch(form, str(name)) for name in named):
        raise BilexError(f"{path}: pairs are written as en-fi, languages as en; one of them is not.")
    return asked
