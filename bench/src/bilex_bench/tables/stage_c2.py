"""The paper's tables around stage C2: over other methods, with other language models, and λ."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from bilex_bench.reported import LM_NAMES, PAPER_LM, PAPER_MIXING, counterpart, reported_by_name
from bilex_bench.setups import Setup
from bilex_bench.tables.means import CSLS, figures_table, mean_metrics, mean_or_none, present, with_mean
from bilex_bench.tables.sheet import Method, Sheet, is_ablation, same_but
from bilex_bench.tables.table import Cell, Column, Figures, Table, Text


def over_others_tables(sheet: Sheet) -> list[Table]:
    """Each aligner that stage C2 was built on, alone and under it, where several were."""
    tables = []
    for lm in _models(sheet):
        stages = sheet.only(m for m in _at_one_mixing(sheet, lm) if not _has_ablated_aligner(m.setup))
        if len({method.setup.method for method in stages.methods}) < 2:
            continue
        chosen = sheet.only(
            m for stage in stages.methods for m in (aligner_alone(sheet, stage), stage) if m is not None
        )
        rows: list[list[Cell]] = []
        for seeds in stages.seeds:
            directions = [
                d
                for d in present(stages, seeds)
                if sum((d.pair, seeds) in m.runs for m in stages.methods) > 1
            ]
            rows += [
                [Text(seeds), Text(name), *(mean_metrics(m, those, seeds, CSLS) for m in chosen.methods)]
                for name, those in with_mean(directions)
                if those
            ]
        tables += figures_table(
            chosen,
            "c2-over-others",
            f"Stage C2 over other methods, {lm}",
            "P@1 × 100 by CSLS of each aligner alone and of stage C2 over it, in the directions in which "
            "stage C2 was built on several.",
            [Column("seeds"), Column("direction"), *(Column(m.name) for m in chosen.methods)],
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
    alone = next((found for stage in stages if (found := aligner_alone(sheet, stage))), None)
    chosen = sheet.only([*([alone] if alone else []), *stages] if stages else [])
    ours = {LM_NAMES.get(str(stage.setup.lm)) for stage in stages}
    theirs = [lm for lm in dict.fromkeys(LM_NAMES.values()) if lm not in ours and _is_reported(chosen, lm)]
    rows: list[list[Cell]] = []
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
            rows.append([Text(seeds), Text(name), *figures, *beside])
    return figures_table(
        chosen,
        "lms",
        "Stage C2 with other language models",
        "P@1 × 100 by CSLS of C1 alone, and of stage C2 over it with each language model.",
        [
            *(Column("seeds"), Column("direction")),
            *(Column(_model_heading(method, chosen)) for method in chosen.methods),
            *(Column(f"C2 [{lm}]") for lm in theirs),
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
    values = sorted({mixing for by_mixing in swept for mixing in by_mixing}, key=_numbers_first)
    chosen = sheet.only(method for by_mixing in swept for method in by_mixing.values())
    rows: list[list[Cell]] = []
    for seeds in chosen.seeds:
        for by_mixing in swept:
            directions = present(sheet.only(by_mixing.values()), seeds)
            figures = [
                mean_metrics(by_mixing[value], directions, seeds, CSLS, compared=False)
                if value in by_mixing
                else Figures((None,))
                for value in values
            ]
            if directions:
                rows.append([Text(seeds), Text(_stage_name(next(iter(by_mixing.values())))), *figures])
    return figures_table(
        chosen,
        "lambda",
        "The weight λ of the language model",
        "Mean P@1 × 100 by CSLS over directions; 0 is the aligner alone, 1 the language model alone, auto is "
        "chosen on held-out seeds.",
        [Column("seeds"), Column("stage C2"), *(Column(f"λ = {value}") for value in values)],
        rows,
        [*_chosen_sentences(chosen), "The paper draws its curves without giving the figures."],
    )


def aligner_alone(sheet: Sheet, stage: Method) -> Method | None:
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


def _stage_name(method: Method) -> str:
    setup = method.setup
    return f"{setup.method} + {setup.lm}{'' if setup.tune else ', not tuned'}"


def _chosen_sentences(sheet: Sheet) -> list[str]:
    """Which λ were chosen."""
    found = sorted(
        float(result.report["mixing"])
        for result in sheet.results
        if result.setup.mixing == "auto" and "mixing" in result.report
    )
    if not found:
        return []
    return [f"auto chose λ from {found[0]:g} to {found[-1]:g}, {found[len(found) // 2]:g} in the middle."]


def _numbers_first(mixing: str) -> tuple[bool, float]:
    return mixing == "auto", 0.0 if mixing == "auto" else float(mixing)
