"""Which parts of C1 help whom: joined starts, passes and the constants of the last pass, on four families.

    python -m research.never_worse DATA --out OUT/never_worse.jsonl --workers 4 --seconds 540
    python -m research.never_worse DATA --out ... --settings en-ru:1k mixed/en-it:5k dictionary/en-de:1k
    python -m research.never_worse DATA --out OUT/check.jsonl --runs check --known never_worse.jsonl

DATA has vectors/ (web text: en, fi, fr, ru), europarl/vectors/ (de, fr, it), dictionary/vectors/ (en: CBOW
with subwords on the text of two dictionaries) and dictionaries/xling/. A setting is FAMILY/PAIR:SEEDS;
"mixed/en-it" pairs web English with parliament Italian, "dictionary/en-it" the other English with it.

For each setting C1 runs as a chain: one pass, and from its surest pairs a second and third pass, each with
the constants of its seeds ("own") or with those of many seeds ("many"). Every link of the chain is one
candidate and one JSON line, for the forms paper, best and careful, from the seeds alone or from a joined
start.

Each chain runs up to three times. `final` learns from all seeds and is scored on the test dictionary: for the
report, never for a choice. `trial` and `whole` hold out seeds and are scored on these: `trial` on 20,000
words and 45 % of the way, as a fit's own trial is, `whole` on all words and all of the way. Ranks of all
held-out words are kept, one character per word, so that any rule can be judged afterwards.

The runs `early held` and `early final` compare shorter passes with whole ones.
The run `check` fits what a user gets, preset "auto", and the presets "paper", "best" and "careful" where
`--known` does not have them yet; `research.limits` says whether auto holds its limits.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bilex.aligners.advanced import advanced_maps
from bilex.aligners.base import Aligner
from bilex.aligners.c1 import C1
from bilex.aligners.c1_settings import MANY_SEEDS, C1Constants, shortened
from bilex.aligners.induction import augmentation, induce_pairs, surest_pairs, without_words_of
from bilex.aligners.preparation import UnitRows, small_vocabularies
from bilex.aligners.starts import first_dictionary
from bilex.core.device import resolve_device
from bilex.core.errors import BilexError
from bilex.fit import fit
from bilex.fit.held_out import hold_out
from bilex.fit.trial import WORDS
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from research.packed import read_dictionary, read_vectors

Maps = tuple[torch.Tensor, torch.Tensor]
Pairs = np.ndarray
ANCHORS = (3_000, 5_000)
FORMS = ("careful", "best")
FAMILIES = {  # where the vectors of a pair's two languages lie, for settings that name no folder
    "mixed": {"en": "", "fi": "", "ru": "", "de": "europarl", "it": "europarl", "fr": "europarl"},
    "dictionary": {"en": "dictionary", "de": "europarl", "it": "europarl", "fr": "europarl"},
}
_FIRST = ("en-ru", "fi-ru", "europarl/de-it", "mixed/en-it", "dictionary/en-it", "en-fi", "mixed/en-de")
_THEN = (
    "dictionary/en-de",
    "europarl/it-fr",
    "en-fr",
    "ru-fr",
    "mixed/fi-it",
    "dictionary/en-fr",
    "europarl/de-fr",
    "fi-fr",
)


def ordered_jobs() -> list[tuple[str, str]]:
    """Settings and runs, the most valuable first."""
    jobs = []
    for pairs in (_FIRST, _THEN):
        for seeds in ("1k", "5k"):
            jobs += [(f"{pair}:{seeds}", run) for pair in pairs for run in ("final", "trial")]
        jobs += [(f"{pair}:0", "final") for pair in pairs]
    for seeds in ("1k", "5k"):
        jobs += [(f"{pair}:{seeds}", "whole") for pair in (*_FIRST, *_THEN)]
    for pair in ("fi-ru", "en-ru", "mixed/en-it", "europarl/de-it", "ru-fr", "en-fi"):
        jobs += [(f"{pair}:{size}", f"early {run}") for size in ("5k", "1k") for run in ("held", "final")]
    jobs += [(f"{pair}:{seeds}", "check") for pair in (*_FIRST, *_THEN) for seeds in ("1k", "5k", "0")]
    return jobs


def read(data: Path, setting: str, limit: int) -> tuple[WordVectors, WordVectors, Lexicon, Lexicon]:
    """Vectors, seeds and test pairs of a setting."""
    place, _, size = setting.partition(":")
    family, _, pair = place.rpartition("/")
    folders = FAMILIES.get(family)
    source, target = (
        read_vectors(data / (folders[language] if folders else family), language, limit)
        for language in pair.split("-")
    )
    seeds = read_dictionary(data, pair, f"train.freq.{size}") if size != "0" else Lexicon([])
    return source, target, seeds, read_dictionary(data, pair, "test.freq.2k")


class Chain:
    """C1 on one problem, pass by pass.

    Args:
        source: Source vectors.
        target: Target vectors.
        seeds: Usable seed pairs.
        way: The share of the way of each pass.
        device: Where to compute.
    """

    def __init__(
        self, source: WordVectors, target: WordVectors, seeds: Lexicon, way: float, device: str
    ) -> None:
        self.words, self.way, self.device = (source, target), way, device
        self.seeds = seeds.index(source.key_to_index, target.key_to_index)
        place = resolve_device(device)
        self.rows = UnitRows(source, place), UnitRows(target, place)
        self.sizes = len(self.seeds), min(len(source), len(target))

    def constants(self, form: str, seeds: int) -> C1Constants:
        """Those of a form for some number of seeds."""
        return shortened(C1(preset=form).constants(seeds, self.sizes[1]), self.way, form)

    def start(self, seeds_for: int) -> tuple[Pairs, str | None]:
        """The first dictionary of a joined start, and its name."""
        constants = self.constants("careful", seeds_for)
        sizes: dict[str, Any] = {"frequent": constants.frequent, "keep": constants.augment}
        found = first_dictionary(*self.words, self.seeds, **sizes, device=self.device)
        return found.pairs, found.start

    def passed(self, form: str, constants: C1Constants, seeds: Pairs, dictionary: Pairs) -> Maps:
        """The maps after one pass (Algorithm 1)."""
        return list(self.rounds(form, constants, seeds, dictionary))[-1]

    def rounds(self, form: str, constants: C1Constants, seeds: Pairs, dictionary: Pairs) -> Iterator[Maps]:
        """The maps after each round of a pass."""
        c1 = C1(preset=form, device=self.device)
        x, y = self.rows
        maps: Maps | None = None
        for number in range(constants.warm_up + constants.iterations):
            if maps is not None:
                induced = induce_pairs(
                    *(side.mapped(part) for side, part in zip((x, y), maps, strict=True)),
                    frequent=constants.frequent, keep=constants.augment,
                    full_csls=constants.full_csls, device=x.device,
                )  # fmt: skip
                dictionary = np.concatenate([seeds, augmentation(induced, seeds)])
            found = advanced_maps(x[dictionary[:, 0]], y[dictionary[:, 1]])
            maps = found.source.float(), found.target.float()
            if number < constants.warm_up:
                continue
            contrasted = dictionary if constants.contrast_on_augmented or not len(seeds) else seeds
            contrast = c1.objective(x, y, contrasted, constants)
            for update in range(constants.updates):
                updated, loss = c1.update(contrast, maps, constants.learning_rate * constants.decay**update)
                if not np.isfinite(loss):
                    break
                maps = updated
            yield maps

    def anchored(self, maps: Maps, anchors: int) -> Pairs:
        """The seeds and the surest pairs that a pass has found."""
        x, y = (rows.mapped(part) for rows, part in zip(self.rows, maps, strict=True))
        anchors = min(anchors, max(1, self.sizes[1] // 3))
        found = without_words_of(surest_pairs(x, y, device=x.device), self.seeds)
        return np.concatenate([self.seeds, found[:anchors]])

    def early(self, form: str, seeds: int) -> Iterator[tuple[str, Maps]]:
        """Two passes: all rounds or one, all or 45 % of the way, then one round or two."""
        own, many = self.constants(form, seeds), self.constants(form, MANY_SEEDS)
        for rounds, way in ((own.iterations, 1.0), (own.iterations, 0.45), (1, 0.45)):
            short = replace(shortened(own, way, form), iterations=rounds)
            first = self.passed(form, short, self.seeds, self.seeds)
            more = self.anchored(first, ANCHORS[1])
            for number, maps in enumerate(self.rounds(form, many, more, more), 1):
                yield f"{rounds} rounds, way {way}, then {number}", maps

    def links(self, form: str, dictionary: Pairs, seeds: int) -> Iterator[tuple[str, Maps]]:
        """The maps after each link of the chain, by name.

        Args:
            form: A preset.
            dictionary: The first dictionary.
            seeds: The number of seeds whose constants are the chain's own.
        """
        own, many = self.constants(form, seeds), self.constants(form, MANY_SEEDS)
        first = self.passed(form, own, self.seeds, dictionary)
        yield "1", first
        if form == "paper":
            return
        fewer = self.anchored(first, ANCHORS[0])
        second = self.passed(form, own, fewer, fewer)
        yield "2 own", second
        if own != many:
            more = self.anchored(first, ANCHORS[1])
            yield "2 many", self.passed(form, many, more, more)
        more = self.anchored(second, ANCHORS[1])
        if own != many:
            yield "3 own", self.passed(form, own, more, more)
        yield "3 many", self.passed(form, many, more, more)

    def ranks(self, maps: Maps, pairs: Pairs) -> dict[str, np.ndarray]:
        """The rank of each word's best translation (0 to 9; 10 beyond), by direction and retrieval."""
        x, y = (rows.mapped(part) for rows, part in zip(self.rows, maps, strict=True))
        r_x, r_y = _mean_similarity(x, y), _mean_similarity(y, x)
        return {
            **_ranks(x, y, r_y, pairs, "forward"),
            **_ranks(y, x, r_x, np.ascontiguousarray(pairs[:, ::-1]), "backward"),
        }


def _mean_similarity(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    blocks = [(block @ keys.T).topk(10, dim=1).values.mean(1) for block in torch.split(queries, 4096)]
    return torch.cat(blocks)


def _ranks(
    x: torch.Tensor, y: torch.Tensor, r_y: torch.Tensor, pairs: Pairs, name: str
) -> dict[str, np.ndarray]:
    asked, place = np.unique(pairs[:, 0], return_inverse=True)
    found = {}
    for retrieval in ("nn", "csls"):
        answers = []
        for block in torch.split(torch.from_numpy(asked).to(x.device), 4096):
            scores = x[block] @ y.T
            answers.append((scores if retrieval == "nn" else 2 * scores - r_y).topk(10, dim=1).indices.cpu())
        hits = torch.cat(answers).numpy()[place.reshape(-1)] == pairs[:, 1:]
        rank = np.where(hits.any(axis=1), hits.argmax(axis=1), 10)
        best = np.full(len(asked), 10)
        np.minimum.at(best, place.reshape(-1), rank)
        found[f"{name} {retrieval}"] = best
    return found


def scores(ranks: dict[str, np.ndarray], keep: bool) -> dict[str, Any]:
    """P@1 in %, its mean, the mean reciprocal rank by CSLS, and where wanted the ranks as text."""
    p_at_1 = {name: round(100 * float((rank == 0).mean()), 2) for name, rank in ranks.items()}
    reciprocal = [
        np.where(rank < 10, 1 / (1 + rank), 0).mean() for name, rank in ranks.items() if name.endswith("csls")
    ]
    row: dict[str, Any] = {
        "p@1": list(p_at_1.values()),
        "mean": round(float(np.mean(list(p_at_1.values()))), 2),
        "mrr": round(100 * float(np.mean(reciprocal)), 2),
    }
    if keep:
        row["ranks"] = {
            name: "".join("0123456789x"[place] for place in rank)
            for name, rank in ranks.items()
            if name.endswith("csls")
        }
    return row


def checked(options: argparse.Namespace, setting: str) -> Iterator[dict[str, Any]]:
    """P@1 of auto and of the presets that are not known yet, on the test dictionary."""
    source, target, seeds, test = read(options.data, setting, options.words)
    pairs = test.index(source.key_to_index, target.key_to_index)
    known = {row["form"] for row in known_rows(options) if row["setting"] == setting}
    lexicon = seeds if len(seeds) else None
    for form in ("auto", "paper", "best", "careful"):
        if form in known:
            continue
        started = time.perf_counter()
        aligner: Aligner = C1(preset=form, device=options.device)
        row: dict[str, Any] = {"setting": setting, "run": "check", "form": form}
        try:
            if form == "auto":
                fitted = fit(aligner, source, target, lexicon)
                aligner = fitted.aligner
                row["trial"] = fitted.report.trial.as_dict() if fitted.report.trial else None
            else:
                aligner.fit(source, target, lexicon)
        except BilexError as error:
            yield {**row, "failed": str(error)}
            continue
        seconds = round(time.perf_counter() - started, 2)
        chain = Chain(source, target, Lexicon([]), 1.0, options.device)
        device = chain.rows[0].device
        maps = tuple(
            torch.from_numpy(side.matrix).to(device) for side in (aligner.source_map_, aligner.target_map_)
        )
        yield {**row, "seconds": seconds, **scores(chain.ranks((maps[0], maps[1]), pairs), keep=False)}


def known_rows(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The presets of an earlier file."""
    if options.known is None:
        return []
    return preset_rows([json.loads(line) for line in options.known.read_text(encoding="utf-8").splitlines()])


def preset_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The presets among the links: one pass from the seeds alone; without seeds, the last link."""
    found = []
    for row in rows:
        without = row["setting"].endswith(":0")
        link = ("joined" if without else "seeds", "3 many" if without and row.get("form") != "paper" else "1")
        if "mean" in row and row["run"] == "final" and (row["start"], row["link"]) == link:
            found.append(row)
            if without and row["form"] == "careful":  # what auto is without seeds
                found.append({**row, "form": "auto"})
    return found


def work(options: argparse.Namespace, setting: str, run: str) -> Iterator[dict[str, Any]]:
    """The rows of one setting and run."""
    if run == "check":
        yield from checked(options, setting)
        return
    source, target, seeds, test = read(options.data, setting, options.words)
    usable = seeds.covered(source.key_to_index, target.key_to_index)
    learned, judged, way = usable, test, 1.0
    if run not in ("final", "early final"):
        cut = hold_out(usable, 0.1, 0)
        if cut is None:
            return
        learned, judged = cut
    if run == "trial":
        source, target = small_vocabularies(source, target, usable, WORDS)
        way = 0.45
    chain = Chain(source, target, learned, way, options.device)
    pairs = judged.index(source.key_to_index, target.key_to_index)
    about = {"setting": setting, "run": run}
    if run.startswith("early"):
        yield from ({**about, **row} for row in early_rows(chain, pairs, len(usable), options.forms))
    else:
        yield from ({**about, **row} for row in linked_rows(chain, pairs, len(usable), run != "final"))


def early_rows(chain: Chain, pairs: Pairs, seeds: int, forms: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Scores of two passes, whole or short."""
    for form in forms:
        started = time.perf_counter()
        for link, maps in chain.early(form, seeds):
            seconds = round(time.perf_counter() - started, 1)
            yield {
                "form": form,
                "link": link,
                "seconds": seconds,
                **scores(chain.ranks(maps, pairs), keep=False),
            }
            started = time.perf_counter()


def linked_rows(chain: Chain, pairs: Pairs, seeds: int, keep: bool) -> Iterator[dict[str, Any]]:
    """Scores of every link of the chains."""
    starts: dict[str, tuple[Pairs, str | None]] = {"seeds": (chain.seeds, None)} if len(chain.seeds) else {}
    started = time.perf_counter()
    try:
        starts["joined"] = chain.start(seeds)
    except BilexError as error:
        yield {"failed": str(error)}
    start_seconds = time.perf_counter() - started
    for begin, (dictionary, name) in starts.items():
        for form in ("paper", *FORMS) if begin == "seeds" or not len(chain.seeds) else FORMS:
            started = time.perf_counter()
            for link, maps in chain.links(form, dictionary, seeds):
                if chain.rows[0].device.type == "cuda":
                    torch.cuda.synchronize()
                seconds = time.perf_counter() - started
                yield {
                    "form": form, "start": begin, "link": link, "by": name,
                    "seconds": round(seconds, 2), "start seconds": round(start_seconds, 2),
                    "words": len(pairs),
                    **scores(chain.ranks(maps, pairs), keep=keep),
                }  # fmt: skip
                started = time.perf_counter()


def serve(options: argparse.Namespace, jobs: Any, rows: Any, ends: float) -> None:
    """One worker: take jobs until none is left or the time is over."""
    torch.set_num_threads(options.threads)
    while time.time() < ends:
        try:
            setting, run = jobs.get_nowait()
        except Exception:
            break
        try:
            for row in work(options, setting, run):
                rows.put(row)
                if time.time() > ends + 10:
                    break
        except Exception as error:
            rows.put({"setting": setting, "run": run, "failed": repr(error)})
    rows.put(None)


def main(arguments: list[str] | None = None) -> None:
    """Run the jobs in several processes and write one JSON line per candidate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--settings", nargs="+")
    parser.add_argument("--runs", nargs="+", default=["final", "trial", "whole"])
    parser.add_argument("--known", type=Path, help="results of an earlier run, for the check")
    parser.add_argument("--words", type=int, default=40_000, help="of each language")
    parser.add_argument("--forms", nargs="+", default=FORMS, help="of the early runs")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--threads", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args(arguments)
    ends = time.time() + options.seconds
    context = multiprocessing.get_context("spawn")
    jobs, rows = context.Queue(), context.Queue()
    wanted = [job for job in ordered_jobs() if job[1] in options.runs]
    if options.settings:
        wanted = [
            (setting, run)
            for setting in options.settings
            for run in options.runs
            if run == "final" or not setting.endswith(":0")
        ]
    for job in wanted:
        jobs.put(job)
    time.sleep(0.5)
    workers = [
        context.Process(target=serve, args=(options, jobs, rows, ends)) for _ in range(options.workers)
    ]
    for worker in workers:
        worker.start()
    running = len(workers)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a", encoding="utf-8") as file:
        while running:
            row = rows.get()
            if row is None:
                running -= 1
                continue
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(json.dumps({key: value for key, value in row.items() if key != "ranks"}), flush=True)
    for worker in workers:
        worker.join()
    if "check" in options.runs:
        print("python -m research.limits judges the results", flush=True)


if __name__ == "__main__":
    main()
