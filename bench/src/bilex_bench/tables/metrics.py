"""Tables of metrics: the paper's, with its results beside ours, and leak-free scores."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bilex_bench import reported as paper
from bilex_bench.reported import PAPER_LM, PAPER_MIXING, Retrieval, counterpart, reported_by_name
from bilex_bench.results import grouped
from bilex_bench.tables.sheet import Direction, Method, Sheet, is_ablation, same_but, without_sweep
from bilex_bench.tables.table import Metrics, Table, Value, best_marked

Groups = list[tuple[str, list[Direction]]]  # the name of a row, and the directions of its means
_CSLS: Mapping[str, Retrieval] = {"": "csls"}
_NN_AND_CSLS: Mapping[str, Retrieval] = {"NN": "nn", "CSLS": "csls"}


@dataclass(frozen=True, eq=False)
class Row:
    """A row of means over some directions."""

    seeds: str
    name: str
    directions: Sequence[Direction]


Column = tuple[str, Callable[[Row], Metrics]]  # a heading, and what makes the cell of each row


def main_tables(sheet: Sheet) -> Iterator[Table]:
    """P@1 by CSLS, means by language; as in the paper of aligners and of stage C2 over C1."""
    if sheet.benchmark == "panlex":
        return
    chosen = sheet.only(
        method
        for method in without_sweep(sheet.methods)
        if not is_ablation(method.setup) and (method.setup.lm is None or method.setup.method == "c1")
    )
    yield _metric_table(
        chosen,
        "main",
        "P@1 by language",
        "P@1 × 100 by CSLS. L→* and *→L are means over the directions from and to a language; the last row "
        "of each number of seeds is the mean over all directions.",
        _rows(chosen, _by_language),
        heading="directions",
    )


def full_tables(sheet: Sheet) -> Iterator[Table]:
    """P@1 by NN and CSLS in every direction, one table for each number of seeds, all methods."""
    for size in sheet.seeds if sheet.benchmark != "panlex" else ():
        methods = without_sweep(sheet.methods)
        chosen = sheet.only(m for m in methods if any(name == size for _, name in m.runs))
        yield _metric_table(
            chosen,
            f"full-{size}",
            f"P@1 in every direction, {size} seeds",
            f"P@1 × 100 by cosine (NN) and by CSLS, {size} seeds.",
            [row for row in _rows(chosen) if row.seeds == size],
            _columns(chosen, retrievals=_NN_AND_CSLS),
            with_seeds=False,
        )


def panlex_tables(sheet: Sheet) -> Iterator[Table]:
    """P@1 by CSLS on PanLex-BLI, where each direction has its own dictionaries."""
    if sheet.benchmark != "panlex":
        return

    def forward(directions: Sequence[Direction]) -> Groups:
        return _with_mean([direction for direction in directions if direction.name == "forward"])

    yield _metric_table(
        sheet,
        "panlex",
        "PanLex-BLI",
        "P@1 × 100 by CSLS, from source to target of each dictionary.",
        _rows(sheet, forward),
    )


def over_others_tables(sheet: Sheet) -> Iterator[Table]:
    """Each aligner that stage C2 was built on, alone and under it, where several were."""
    for lm in _models(sheet):
        stages = sheet.only(_stages(sheet, lm))
        if len({method.setup.method for method in stages.methods}) < 2:
            continue
        aligners = [(_aligner_alone(sheet, stage), stage) for stage in stages.methods]
        chosen = sheet.only(m for pair in aligners for m in pair if m is not None)
        rows: list[Row] = []
        for seeds in stages.seeds:
            several = Counter(pair for m in stages.methods for pair, name in m.runs if name == seeds)
            directions = [d for d in stages.directions(seeds) if several[d.pair] > 1]
            rows += [Row(seeds, *group) for group in _with_mean(directions) if directions]
        yield _metric_table(
            chosen,
            "c2-over-others",
            f"Stage C2 over other methods, {lm}",
            "P@1 × 100 by CSLS of each aligner alone and of stage C2 over it, in the directions in which "
            "stage C2 was built on several.",
            rows,
        )


def language_model_tables(sheet: Sheet) -> Iterator[Table]:
    """C1 alone, stage C2 over it with each language model, and the paper's models where it reports them."""
    stages = [m for lm in _models(sheet) for m in _stages(sheet, lm) if m.setup.method == "c1"]
    alone = [found for stage in stages if (found := _aligner_alone(sheet, stage))][:1]
    chosen = sheet.only([*alone, *stages])

    def reported(lm: str, row: Row) -> Metrics:
        names = [f"C2 [{lm}]", *(["C2 (C1)"] if lm == PAPER_LM else [])]
        directions = ("->".join(direction.languages) for direction in row.directions)
        value = _mean([reported_by_name(names, row.seeds, name, "csls") for name in directions])
        return Metrics({"": None}, {} if value is None else {"": value})

    def column(method: Method) -> Column:
        """The name of a stage has its model's, as the paper writes it, where that says enough."""
        found, lm, name = counterpart(method.setup), method.setup.lm, method.name
        if lm is not None and sum(other.setup.lm == lm for other in chosen.methods) == 1:
            name = f"C2 [{paper.LM_NAMES.get(lm, lm)}]"
        return name, partial(_mean_metrics, method, compared=found is None or not found.difference)

    rows = _rows(chosen)
    ours = {paper.LM_NAMES.get(str(stage.setup.lm)) for stage in stages}
    theirs = [
        lm
        for lm in dict.fromkeys(paper.LM_NAMES.values() if chosen.benchmark == "xling" else ())
        if lm not in ours
        and any(reported(lm, replace(row, directions=row.directions[:1])).has_any for row in rows)
    ]
    yield _metric_table(
        chosen,
        "lms",
        "Stage C2 with other language models",
        "P@1 × 100 by CSLS of C1 alone, and of stage C2 over it with each language model.",
        rows,
        [*map(column, chosen.methods), *((f"C2 [{lm}]", partial(reported, lm)) for lm in theirs)],
        [f"Not run here, only reported: {', '.join(theirs)}."] if theirs else [],
    )


def mixing_tables(sheet: Sheet) -> Iterator[Table]:
    """The mean over directions by λ, for each stage C2 that was mixed with several."""
    models = [method for method in sheet.methods if method.setup.lm is not None]
    stages = grouped(models, lambda method: same_but(method.setup, "mixing")).values()
    by_mixing = [{str(method.setup.mixing): method for method in stage} for stage in stages]
    swept = [sheet.only(stage.values()) for stage in by_mixing if len(stage) > 1]
    chosen = sheet.only(method for stage in swept for method in stage.methods)
    stage_of: dict[Row, Sheet] = {}
    for seeds in chosen.seeds:
        for stage in swept:
            if directions := stage.directions(seeds):
                first = stage.methods[0].setup
                name = f"{first.method} + {first.lm}{'' if first.tune else ', not tuned'}"
                stage_of[Row(seeds, name, directions)] = stage

    def mixed(value: str, row: Row) -> Metrics:
        found = [method for method in stage_of[row].methods if str(method.setup.mixing) == value]
        return _mean_metrics(found[0], row, compared=False) if found else Metrics({"": None})

    values = {str(method.setup.mixing) for method in chosen.methods}
    ordered = [*sorted(values - {"auto"}, key=float), *sorted(values & {"auto"})]
    auto = sorted(r.mixing for r in chosen.results if r.setup.mixing == "auto" and r.mixing is not None)
    choice = []
    if auto:
        choice = [f"auto chose λ from {auto[0]:g} to {auto[-1]:g}, {auto[len(auto) // 2]:g} in the middle."]
    yield _metric_table(
        chosen,
        "lambda",
        "The weight λ of the language model",
        "Mean P@1 × 100 by CSLS over directions; 0 is the aligner alone, 1 the language model alone, auto is "
        "chosen on held-out seeds.",
        list(stage_of),
        [(f"λ = {value}", partial(mixed, value)) for value in ordered],
        [*choice, "The paper draws its curves without giving the numbers."],
        heading="stage C2",
    )


def ablation_tables(sheet: Sheet) -> Iterator[Table]:
    """C1 with and without its parts, models alone, mixtures at the paper's λ; none without an ablation."""
    chosen = sheet.only(
        m
        for m in sheet.methods
        if m.setup.method == "c1" and (m.setup.lm is None or m.setup.mixing in (PAPER_MIXING, 1))
    )
    if not any(is_ablation(method.setup) for method in chosen.methods):
        return

    def cell(method: Method, row: Row) -> Metrics:
        """Our means, with the paper's over all its pairs."""
        metrics = _mean_metrics(method, row, retrievals=_NN_AND_CSLS, compared=False)
        found = counterpart(method.setup)
        if found is None or sheet.benchmark != "xling" or not metrics.has_any:
            return metrics
        name = "Avg." if row.name == "mean" else row.name.replace("→", "->")
        return _with_reported(
            metrics,
            {key: reported_by_name(found.names, row.seeds, name, r) for key, r in _NN_AND_CSLS.items()},
        )

    yield _metric_table(
        chosen,
        "ablation",
        "What each part is worth",
        "P@1 × 100 by cosine (NN) and by CSLS, means over directions. CL is contrastive learning, SL "
        "self-learning.",
        _rows(chosen, _by_language),
        [(method.name, partial(cell, method)) for method in chosen.methods],
        heading="directions",
        means="their means go over all 28 pairs, as the paper gives no others",
    )


def leak_free_tables(sheet: Sheet) -> Iterator[Table]:
    """Means of the standard score, and of that without words whose pairs were seeds."""
    rows: list[list[Value]] = []
    for seeds in sheet.seeds:
        row = Row(seeds, "mean", sheet.directions(seeds))
        for method in without_sweep(sheet.methods):
            standard, without = (
                _mean_metrics(method, row, retrievals=_NN_AND_CSLS, leak_free=free, compared=False)
                for free in (False, True)
            )
            both = {name: (standard.ours[name], without.ours[name]) for name in _NN_AND_CSLS}
            lost = {name: None if a is None or b is None else b - a for name, (a, b) in both.items()}
            if standard.has_any:
                rows.append([seeds, method.name, standard, without, Metrics(lost)])
    columns = ["seeds", "method", "standard", "leak-free", "difference"]
    yield Table(
        "leak-free",
        "Standard and leak-free P@1",
        "Means of P@1 × 100 over directions: over all covered test words (standard), and without the "
        "words that have a test pair in the training dictionary (leak-free).",
        columns,
        rows,
        _notes(sheet, columns, rows),
    )


def _with_mean(directions: Sequence[Direction]) -> Groups:
    """Each direction alone, and all of them."""
    return [*((str(direction), [direction]) for direction in directions), ("mean", list(directions))]


def _by_language(directions: Sequence[Direction]) -> Groups:
    """Directions from each language, to each language, and all."""
    groups: Groups = []
    for language in sorted({language for direction in directions for language in direction.languages}):
        groups.append((f"{language}→*", [d for d in directions if d.languages[0] == language]))
        groups.append((f"*→{language}", [d for d in directions if d.languages[1] == language]))
    return [*groups, ("mean", list(directions))]


def _rows(sheet: Sheet, groups: Callable[[Sequence[Direction]], Groups] = _with_mean) -> list[Row]:
    return [Row(seeds, *group) for seeds in sheet.seeds for group in groups(sheet.directions(seeds))]


def _columns(sheet: Sheet, retrievals: Mapping[str, Retrieval] = _CSLS) -> list[Column]:
    """The means of each method."""
    return [(m.name, partial(_mean_metrics, m, retrievals=retrievals)) for m in sheet.methods]


def _mean_metrics(
    method: Method,
    row: Row,
    *,
    retrievals: Mapping[str, Retrieval] = _CSLS,
    leak_free: bool = False,
    compared: bool = True,
) -> Metrics:
    """The mean P@1 × 100 of a method over directions, with the reported mean over the same ones."""
    scores: dict[Direction, list[Any]] = {}
    for direction in row.directions:
        found = [method.score(direction, row.seeds, r, leak_free=leak_free) for r in retrievals.values()]
        if None not in found:
            scores[direction] = found
    if not scores:
        return Metrics(dict.fromkeys(retrievals))
    means = map(statistics.fmean, zip(*scores.values(), strict=True))
    share = (len(scores), len(row.directions)) if len(scores) < len(row.directions) else None
    metrics = Metrics(dict(zip(retrievals, means, strict=True)), share=share)
    if not compared:
        return metrics
    beside = {
        name: _mean([method.reported(d, row.seeds, r) for d in scores]) for name, r in retrievals.items()
    }
    return _with_reported(metrics, beside)


def _with_reported(metrics: Metrics, beside: Mapping[str, float | None]) -> Metrics:
    return replace(metrics, reported=beside) if any(v is not None for v in beside.values()) else metrics


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean; None where a value is missing."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None


def _models(sheet: Sheet) -> list[str]:
    return list(dict.fromkeys(str(m.setup.lm) for m in sheet.methods if m.setup.lm is not None))


def _stages(sheet: Sheet, lm: str) -> list[Method]:
    """Stages C2 over whole aligners with a tuned model, at the paper's λ, or else at the most frequent λ."""
    tuned = [m for m in sheet.methods if m.setup.lm == lm and m.setup.tune and m.setup.mixing != 1]
    counts = Counter(method.setup.mixing for method in tuned)
    usual = PAPER_MIXING if PAPER_MIXING in counts else max(counts, key=counts.__getitem__, default=None)
    return [m for m in tuned if m.setup.mixing == usual and not is_ablation(replace(m.setup, lm=None))]


def _aligner_alone(sheet: Sheet, stage: Method) -> Method | None:
    """The aligner that a stage C2 was built on, alone."""
    families = {result.setup.family for result in stage.results}
    aligners = (m for m in sheet.methods if m.setup.lm is None)
    return next((m for m in aligners if any(r.setup.family in families for r in m.results)), None)


def _metric_table(
    sheet: Sheet,
    name: str,
    title: str,
    caption: str,
    rows: Sequence[Row],
    columns: Sequence[Column] | None = None,
    notes: Sequence[str] = (),
    *,
    heading: str = "direction",
    with_seeds: bool = True,
    means: str = "a mean goes over the same directions as ours",
) -> Table:
    """A table with the best metrics marked, and notes; without rows where there are no metrics.

    Its columns are the methods unless others are given. Where some cells of a column have reported metrics,
    the others get dashes.
    """
    columns = _columns(sheet) if columns is None else columns
    cells = [[make(row) for _, make in columns] for row in rows]
    headings = [*(["seeds"] if with_seeds else []), heading, *(name for name, _ in columns)]
    if not any(cell.has_any for row in cells for cell in row):
        return Table(name, title, caption, headings, [])
    for place in range(len(columns)):
        reported = next((row[place].reported for row in cells if row[place].reported), {})
        for row in cells:
            if row[place].has_any and not row[place].reported:
                row[place] = replace(row[place], reported=dict.fromkeys(reported))
    finished: list[list[Value]] = [
        [*([row.seeds] if with_seeds else []), row.name, *best_marked(found)]
        for row, found in zip(rows, cells, strict=True)
    ]
    every = [*_notes(sheet, headings, finished, means), *notes]
    return Table(name, title, caption, headings, finished, every, grouped=with_seeds)


def _notes(
    sheet: Sheet, columns: Sequence[str], rows: Sequence[Sequence[Value]], means: str = ""
) -> list[str]:
    """The pairs and vectors of a table; what the reported metrics are, and what their `means` go over."""
    pairs, listed = len(sheet.pairs), ", ".join(sheet.pairs)
    limits = {method.setup.limit for method in sheet.methods}
    words = {f"at most the {limit:,} most frequent words" if limit else "all words" for limit in limits}
    known = {
        "xling": f"of XLING's {len(paper.XLING_LANGUAGES) * (len(paper.XLING_LANGUAGES) - 1) // 2} pairs",
        "panlex": f"of PanLex-BLI's {len(paper.PANLEX_LANGUAGES) * (len(paper.PANLEX_LANGUAGES) - 1)} "
        "dictionaries among the paper's languages",
    }
    notes = [
        f"{pairs} {known.get(str(sheet.benchmark), 'pair' if pairs == 1 else 'pairs')}: {listed}.",
        f"Ours: the vectors of data set '{sheet.dataset}', {' or '.join(sorted(words))} of each language.",
    ]
    cells = [cell for row in rows for cell in row if isinstance(cell, Metrics)]
    if any(cell.reported for cell in cells):
        notes.append(
            f"In italics and parentheses: reported by {paper.CITATION}, on fastText's Wikipedia vectors with "
            f"200,000 words per language; {means}. The vectors differ, so compare differences between "
            "methods rather than single numbers."
        )
        by_name = dict(zip(columns, zip(*rows, strict=True), strict=True))
        for method in sheet.methods:
            found = counterpart(method.setup)
            compared = (isinstance(c, Metrics) and c.reported for c in by_name.get(method.name, ()))
            if found and found.difference and any(compared):
                notes.append(f"Reported beside {method.name}: {found.names[0]}, {found.difference}.")
    if any(cell.share for cell in cells):
        notes.append(
            "In brackets: over how many of the row's directions the mean goes, where some are missing."
        )
    if any(len(runs) > 1 for method in sheet.methods for runs in method.runs.values()):
        notes.append("Where a method was run with several random seeds, its metric is the mean over runs.")
    return notes
