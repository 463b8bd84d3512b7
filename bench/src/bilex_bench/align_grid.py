"""Models of many language pairs: one fit per pair, locally or on a cluster, into one folder of models.

Only files record what is done. A worker writes the row of the coverage table, then the model, so a pair with
both is finished; the next run does the rest, and a pair that was interrupted continues from its checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from bilex.aligners import get_method
from bilex.core.errors import BilexError
from bilex.core.files import read_json, write_json
from bilex.core.progress import Progress
from bilex.fit import DEFAULT_METHOD
from bilex.model import Translator
from bilex.model.storage import holds_model
from bilex_bench.datasets.folder import ALL, LANGUAGE, DataFolder, Dictionaries, PairFiles, swapped
from bilex_bench.results import Result, Setup
from bilex_bench.toml_file import Strict, TomlFile
from bilex_bench.work import Workplace, WorkPlan, guarded

_GRID = "grid"


@dataclass(frozen=True, kw_only=True)
class ModelPlan(WorkPlan):
    """A plan whose workers write models."""

    models: str  # the folder of models, one per pair; every machine must reach it by this path

    def run_family(
        self, workplace: Workplace, setups: Sequence[Setup], progress: Progress, attempt: int
    ) -> Iterator[Result]:
        """Fit the model of each pair; an error becomes a failed result."""
        for setup in setups:
            yield from guarded(workplace, attempt, [setup], partial(self.fit, setup, workplace, progress))

    def fit(self, setup: Setup, workplace: Workplace, progress: Progress) -> Result:
        """Fit and save the model of a pair."""
        started = time.monotonic()
        source, target = workplace.vocabularies(setup, progress)
        seeds = self.folders[_GRID].seeds(setup.pair, ALL)
        checkpoint = Path(self.work) / "unfinished" / setup.pair
        translator = Translator(workplace.aligner(setup), encoder=setup.lm).fit(
            source, target, seeds, languages=setup.languages, checkpoint=checkpoint, progress=progress
        )
        made = translator.provenance
        seconds = round(time.monotonic() - started, 1)
        row = {
            "key": self._key(setup),
            "source_words": len(source),
            "target_words": len(target),
            "seed_pairs": made.seed_pairs,
            "seed_pairs_covered": made.seed_pairs_covered,
            "expected": {side: made.expectation.of(side)[0] for side in made.expectation.words},
            "seconds": seconds,
        }
        write_json(self._row(setup.pair), row)
        translator.save(Path(self.models) / setup.pair)
        shutil.rmtree(checkpoint, ignore_errors=True)
        return Result(setup=setup, status="done", seconds={"fit": seconds})

    def _key(self, setup: Setup) -> str:
        """A hash of everything a model depends on: settings, seeds and vector files."""
        folder = self.folders[_GRID]
        files = [folder.vectors_path(code) for code in setup.languages]
        seeds = hashlib.sha256(repr(folder.seeds(setup.pair, ALL).pairs).encode()).hexdigest()
        content = [setup.key, seeds, *([str(file), file.stat().st_size] for file in files)]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]

    def _row(self, pair: str) -> Path:
        return Path(self.work) / "rows" / f"{pair}.json"

    def finished(self, setup: Setup) -> dict[str, Any] | None:
        """The row of a pair whose model exists; None if it is yet to be made."""
        model = Path(self.models) / setup.pair
        if not holds_model(model):
            return None
        row = self._row(setup.pair)
        found = read_json(row) if row.is_file() else {}
        if not isinstance(found, dict) or found.get("key") != self._key(setup):
            raise BilexError(
                f"{model}: is a model that was made with other settings or files; move it away, or give "
                "another folder with -o."
            )
        return found


def _code(pattern: str, text: str) -> str:
    if not re.fullmatch(pattern, text):
        raise ValueError("write pairs as en-fi, languages as en")
    return text


def _pattern(text: str) -> str:
    if "{}" not in text:
        raise ValueError("write {} in place of the language or the pair, as in vectors/{}.vec")
    return text


class _Content(Strict):
    """The keys of a pairs file."""

    pairs: list[Annotated[str, AfterValidator(partial(_code, f"{LANGUAGE}-{LANGUAGE}"))]] | None = None
    languages: list[Annotated[str, AfterValidator(partial(_code, LANGUAGE))]] | None = None
    vectors: Annotated[str, AfterValidator(_pattern)]
    seeds: Annotated[str, AfterValidator(_pattern)]
    output: str = "models"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    method: str = DEFAULT_METHOD
    preset: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    limit: int = 200_000
    lm: str | None = None
    random_seed: int = 0


@dataclass(frozen=True)
class PairsFile:
    """What a pairs file describes."""

    folder: DataFolder  # the vectors of all languages, and the seeds of all pairs that have some
    setups: list[Setup]  # one per pair
    without_seeds: list[str]  # pairs of the languages without a seed dictionary
    output: str  # the folder for the models
    device: str  # "auto", "cpu" or "cuda"

    @classmethod
    def read(cls, path: Path) -> PairsFile:
        """Read a pairs file, and look for the files that it names."""
        file, home = TomlFile.read(path), path.absolute().parent
        content = file.load(_Content)
        if (content.pairs is None) == (content.languages is None):
            raise file.error('give either pairs = ["en-fi", ...] or languages = ["en", "fi", ...].')
        listed = content.pairs or [f"{a}-{b}" for a, b in combinations(content.languages or (), 2)]
        dictionaries: dict[str, PairFiles] = {}
        pairs, without_seeds = [], []
        for pair in dict.fromkeys(listed):
            files = {name: home / content.seeds.format(name) for name in (pair, swapped(pair))}
            stored = next((name for name, found in files.items() if found.is_file()), None)
            if stored is not None:
                pairs.append(pair)
                dictionaries[stored] = PairFiles({ALL: files[stored]})
            elif content.pairs:
                raise file.error(f"{pair} has no seed dictionary; looked for {files[pair]}.", "pairs")
            else:
                without_seeds.append(pair)
        if not pairs:
            raise file.error(f"no pair has a seed dictionary; looked for {home / content.seeds}.", "seeds")
        vectors = {code: home / content.vectors.format(code) for pair in pairs for code in pair.split("-")}
        for code, found in vectors.items():
            if not found.exists():
                raise file.error(f"there are no vectors of '{code}'; looked for {found}.", "vectors")
        settings = {**({"preset": content.preset} if content.preset else {}), **content.settings}
        get_method(content.method)().set_params(**settings)
        setups = [
            Setup(
                dataset=_GRID,
                pair=pair,
                seeds=ALL,
                method=content.method,
                settings=settings,
                limit=content.limit,
                seed=content.random_seed,
                lm=content.lm,
            )
            for pair in pairs
        ]
        folder = DataFolder(_GRID, home, Dictionaries(home, "plain", dictionaries), vectors, "")
        return cls(folder, setups, without_seeds, str(home / content.output), content.device)
