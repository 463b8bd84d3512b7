"""The paper's tables of metrics: by language and pair, around stage C2, and ablations; ours without leaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from bilex_bench.reported import (
    LM_NAMES,
    PAPER_LM,
    PAPER_MIXING,
    counterpart,
    reported_average,
    reported_by_name,
)
from bilex_bench.results import Setup
from bilex_bench.tables.sheet import (
    CSLS,
    NN_AND_CSLS,
    PARTS,
    Direction,
    Method,
    Sheet,
    figure_notes,
    figures_table,
    is_ablation,
    mean_metrics,
    mean_or_none,
    mean_rows,
    present,
    same_but,
    with_mean,
    without_sweep,
)
from bilex_bench.tables.table import Column, Figures, Table, Value


def main_tables(sheet: Sheet) -> list[Table]:
    """P@1 by CSLS, means by language: L→*, *→L, and over all directions.

    As in the paper: aligners, and stage C2 over C1; no ablations, no sweep of λ.
    """
    if sheet.benchmark == "panlex":
        return []
    chosen = sheet.only(
        method
        for method in without_sweep(sheet.methods)
        if not is_ablation(method.setup) and (method.setup.lm is None or method.setup.method == "c1")
    )
    return figures_table(
        chosen,
        "main",
        "P@1 by language",
        "P@1 × 100 by CSLS. L→* and *→L are means over the directions from and to a language; the last row "
        "of each number of seeds is the mean over all directions.",
        ["seeds", "directions", *(method.name for method in chosen.methods)],
        [
            row
            for seeds in chosen.seeds
            for row in mean_rows(chosen.methods, seeds, language_groups(present(chosen, seeds)))
        ],
    )


def full_tables(sheet: Sheet) -> list[Table]:
    """P@1 by NN and CSLS in every direction, one table for each number of seeds, all methods."""
    tables = []
    for seeds in sheet.seeds if sheet.benchmark != "panlex" else ():
        methods = without_sweep(sheet.methods)
        chosen = sheet.only(m for m in methods if any(name == seeds for _, name in m.runs))
        rows = mean_rows(chosen.methods, seeds, with_mean(present(chosen, seeds)), NN_AND_CSLS)
        tables += figures_table(
            chosen,
            f"full-{seeds}",
            f"P@1 in every direction, {seeds} seeds",
            f"P@1 × 100 by cosine (NN) and by CSLS, {seeds} seeds.",
            ["direction", *(Column(method.name, PARTS) for method in chosen.methods)],
            [row[1:] for row in rows],
        )
    return tables


def panlex_tables(sheet: Sheet) -> list[Table]:
    """P@1 by CSLS on PanLex-BLI, where each direction has its own dictionaries."""
    if sheet.benchmark != "panlex":
        return []
    rows: list[list[Value]] = []
    for seeds in sheet.seeds:
        directions = [d for d in present(sheet, seeds) if d.way == "forward"]
        rows += mean_rows(sheet.methods, seeds, with_mean(directions))
    return figures_table(
        sheet,
        "panlex",
        "PanLex-BLI",
        "P@1 × 100 by CSLS, from source to target of each dictionary.",
        ["seeds", "direction", *(method.name for method in sheet.methods)],
        rows,
    )


def leak_free_tables(sheet: Sheet) -> list[Table]:
    """Means of the standard score, and of that without words whose pairs were seeds."""
    rows: list[list[Value]] = []
    for seeds in sheet.seeds:
        directions = present(sheet, seeds)
        for method in without_sweep(sheet.methods):
            standard, without = (
                mean_metrics(method, directions, seeds, NN_AND_CSLS, leak_free=leak_free, compared=False)
                for leak_free in (False, True)
            )
            both = zip(standard.ours, without.ours, strict=True)
            lost = [None if a is None or b is None else b - a for a, b in both]
            if standard.has_any:
                rows.append([seeds, method.name, standard, without, Figures(tuple(lost))])
    columns: list[Column | str] = [
        *("seeds", "method"),
        *(Column(name, PARTS) for name in ("standard", "leak-free", "difference")),
    ]
    table = Table.of(
        "leak-free",
        "Standard and leak-free P@1",
        "Means of P@1 × 100 over directions: over all covered test words (standard), and without the "
        "words that have a test pair in the training dictionary (leak-free).",
        columns,
        rows,
        figure_notes(sheet, columns, rows) if rows else (),
    )
    return [table] if rows else []


def language_groups(directions: Sequence[Direction]) -> list[tuple[str, list[Direction]]]:
    """Directions from each language, to each language, and all."""
    groups: list[tuple[str, list[Direction]]] = []
    for language in sorted({language for direction in directions for language in direction.languages}):
        groups.append((f"{language}→*", [d for d in directions if d.languages[0] == language]))
        groups.append((f"*→{language}", [d for d in directions if d.languages[1] == language]))
    return [*groups, ("mean", list(directions))]


def over_others_tables(sheet: Sheet) -> list[Table]:
    """Each aligner that stage C2 was built on, alone and under it, where several were."""
    tables = []
    for lm in _models(sheet):
        stages = sheet.only(m for m in _at_one_mixing(sheet, lm) if not _has_ablated_aligner(m.setup))
        if len({method.setup.method for method in stages.methods}) < 2:
            continue
        chosen = sheet.only(
            m for stage in stages.methods for m in (_aligner_alone(sheet, stage), stage) if m is not None
        )
        rows: list[list[Value]] = []
        for seeds in stages.seeds:
            directions = [
                d
                for d in present(stages, seeds)
                if sum((d.pair, seeds) in m.runs for m in stages.methods) > 1
            ]
            rows += mean_rows(chosen.methods, seeds, with_mean(directions)) if directions else []
        tables += figures_table(
            chosen,
            "c2-over-others",
            f"Stage C2 over other methods, {lm}",
            "P@1 × 100 by CSLS of each aligner alone and of stage C2 over it, in the directions in which "
            "stage C2 was built on several.",
            ["seeds", "direction", *(m.name for m in chosen.methods)],
            rows,
        )
    return tables


def language_model_tables(sheet: Sheet) -> list[Table]:
    """C1 alone, stage C2 over it with each language model, and the paper's models where it reports them."""
    stages = [
        m
        for lm in _models(sheet)
        for m in _at_one_mixing(sheet, lm)
        if m.setup.method == "c1" and not _has_ablated_aligner(m.setup)
    ]
    alone = next((found for stage in stages if (found := _aligner_alone(sheet, stage))), None)
    chosen = sheet.only([*([alone] if alone else []), *stages] if stages else [])
    ours = {LM_NAMES.get(str(stage.setup.lm)) for stage in stages}
    theirs = [lm for lm in dict.fromkeys(LM_NAMES.values()) if lm not in ours and _is_reported(chosen, lm)]
    rows: list[list[Value]] = []
    for seeds in chosen.seeds:
        for name, those in with_mean(present(chosen, seeds)):
            reported = [
                mean_or_none([reported_by_name(_names(lm), seeds, *d.languages, "csls") for d in those])
                for lm in theirs
            ]
            figures = (
                mean_metrics(m, those, seeds, CSLS, compared=not _differs(m.setup)) for m in chosen.methods
            )
            beside = (Figures((None,), () if value is None else (value,)) for value in reported)
            rows.append([seeds, name, *figures, *beside])
    return figures_table(
        chosen,
        "lms",
        "Stage C2 with other language models",
        "P@1 × 100 by CSLS of C1 alone, and of stage C2 over it with each language model.",
        [
            *("seeds", "direction"),
            *(_model_heading(method, chosen) for method in chosen.methods),
            *(f"C2 [{lm}]" for lm in theirs),
        ],
        rows,
        [f"Not run here, only reported: {', '.join(theirs)}."] if theirs else [],
    )


def mixing_tables(sheet: Sheet) -> list[Table]:
    """The mean over directions by λ, for each stage C2 that was mixed with several."""
    stages: dict[str, dict[str, Method]] = {}
    for method in sheet.methods:
        if method.setup.lm is not None:
            stages.setdefault(same_but(method.setup, "mixing"), {})[str(method.setup.mixing)] = method
    swept = [by_mixing for by_mixing in stages.values() if len(by_mixing) > 1]
    values = {mixing for by_mixing in swept for mixing in by_mixing}
    ordered = [*sorted(values - {"auto"}, key=float), *sorted(values & {"auto"})]
    chosen = sheet.only(method for by_mixing in swept for method in by_mixing.values())
    rows: list[list[Value]] = []
    for seeds in chosen.seeds:
        for by_mixing in swept:
            directions = present(sheet.only(by_mixing.values()), seeds)
            figures = [
                mean_metrics(by_mixing[value], directions, seeds, CSLS, compared=False)
                if value in by_mixing
                else Figures((None,))
                for value in ordered
            ]
            first = next(iter(by_mixing.values())).setup
            if directions:
                tuned = "" if first.tune else ", not tuned"
                rows.append([seeds, f"{first.method} + {first.lm}{tuned}", *figures])
    auto = sorted(r.mixing for r in chosen.results if r.setup.mixing == "auto" and r.mixing is not None)
    stated = []
    if auto:
        stated = [f"auto chose λ from {auto[0]:g} to {auto[-1]:g}, {auto[len(auto) // 2]:g} in the middle."]
    return figures_table(
        chosen,
        "lambda",
        "The weight λ of the language model",
        "Mean P@1 × 100 by CSLS over directions; 0 is the aligner alone, 1 the language model alone, auto is "
        "chosen on held-out seeds.",
        ["seeds", "stage C2", *(f"λ = {value}" for value in ordered)],
        rows,
        [*stated, "The paper draws its curves without giving the figures."],
    )


def ablation_tables(sheet: Sheet) -> list[Table]:
    """C1 with and without its parts, models alone, mixtures at the paper's λ; none without an ablation."""
    chosen = sheet.only(
        m
        for m in sheet.methods
        if m.setup.method == "c1" and (m.setup.lm is None or m.setup.mixing in (PAPER_MIXING, 1))
    )
    if not any(is_ablation(method.setup) for method in chosen.methods):
        return []
    rows: list[list[Value]] = []
    for seeds in chosen.seeds:
        for name, those in language_groups(present(chosen, seeds)):
            figures = (
                _beside(mean_metrics(m, those, seeds, NN_AND_CSLS, compared=False), sheet, m, seeds, name)
                for m in chosen.methods
            )
            rows.append([seeds, name, *figures])
    return figures_table(
        chosen,
        "ablation",
        "What each part is worth",
        "P@1 × 100 by cosine (NN) and by CSLS, means over directions. CL is contrastive learning, SL "
        "self-learning.",
        ["seeds", "directions", *(Column(m.name, PARTS) for m in chosen.methods)],
        rows,
        means="their means go over all 28 pairs, as the paper gives no others",
    )


def _beside(figures: Figures, sheet: Sheet, method: Method, seeds: str, row: str) -> Figures:
    """Our means with the paper's over all its pairs."""
    found = counterpart(method.setup)
    if found is None or sheet.benchmark != "xling" or not figures.has_any:
        return figures
    name = "Avg." if row == "mean" else row.upper().replace("→", "->")
    reported = tuple(reported_average(found.names, seeds, name, retrieval) for retrieval in NN_AND_CSLS)
    if all(value is None for value in reported):
        return figures
    return Figures(figures.ours, reported, share=figures.share)


def _aligner_alone(sheet: Sheet, stage: Method) -> Method | None:
    """The aligner that a stage C2 was built on, by itself."""
    families = {result.setup.family for runs in stage.runs.values() for result in runs}
    return next(
        (
            m
            for m in sheet.methods
            if m.setup.lm is None
            and any(r.setup.family in families for runs in m.runs.values() for r in runs)
        ),
        None,
    )


def _models(sheet: Sheet) -> list[str]:
    return list(dict.fromkeys(str(m.setup.lm) for m in sheet.methods if m.setup.lm is not None))


def _at_one_mixing(sheet: Sheet, lm: str) -> list[Method]:
    """The methods with a tuned model, at the paper's λ, or else at the λ that most of them have."""
    tuned = [m for m in sheet.methods if m.setup.lm == lm and m.setup.tune and m.setup.mixing != 1]
    counts = Counter(method.setup.mixing for method in tuned)
    usual = PAPER_MIXING if PAPER_MIXING in counts else max(counts, key=counts.__getitem__, default=None)
    return [method for method in tuned if method.setup.mixing == usual]


def _has_ablated_aligner(setup: Setup) -> bool:
    return is_ablation(replace(setup, lm=None))


def _differs(setup: Setup) -> bool:
    found = counterpart(setup)
    return found is not None and bool(found.difference)


def _names(lm: str) -> tuple[str, ...]:
    return (f"C2 [{lm}]", "C2 (C1)") if lm == PAPER_LM else (f"C2 [{lm}]",)


def _is_reported(sheet: Sheet, lm: str) -> bool:
    return sheet.benchmark == "xling" and any(
        reported_by_name(_names(lm), seeds, *direction.languages, "csls") is not None
        for seeds in sheet.seeds
        for direction in present(sheet, seeds)
    )


def _model_heading(method: Method, sheet: Sheet) -> str:
    """C2 with the model's name, as the paper writes it, where that says enough."""
    lm = method.setup.lm
    if lm is None or sum(other.setup.lm == lm for other in sheet.methods) > 1:
        return method.name
    return f"C2 [{LM_NAMES.get(lm, lm)}]"
