"""The limits of issue 26 as one program: pass, FAIL or not measured for each requirement.

    python -m research.limits [research/results]

reads, as far as they are there:

    refine.jsonl               of research.refine: what decisions do to other words
    never_worse_check.jsonl    of research.never_worse: auto, as a user gets it, and the presets
    curve.jsonl                of research.never_worse: auto with any number of seeds
    vocabularies.jsonl         of research.vocabularies: promises with vocabularies of several sizes
    mixing.jsonl               of research.mixing: P@1 with fixed λ, and the answers that choose λ

It ends with status 1 if a requirement fails.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bilex.encoders.settings import DEMO_MIXING, OFFLINE_ENCODER, PRESETS
from bilex.fit.trial import choose_mixing

Row = dict[str, Any]
Verdict = tuple[str, bool | None, str]  # requirement; whether it holds, None if not measured; the numbers
HERE = Path(__file__).parent / "results"


def rows_of(folder: Path, *names: str) -> list[Row]:
    """All lines of some files, as far as they exist."""
    files = [folder / name for name in names if (folder / name).exists()]
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def refine(folder: Path) -> Iterator[Verdict]:
    """Decisions never hurt, help when there are many, and change little."""
    rows = rows_of(folder, "refine.jsonl")
    mean = "decisions: mean change on other words at least 0"
    case = "decisions: no case below -0.3 beyond its interval"
    many = "decisions: at least +1 with 1,000"
    few = "decisions: at most 5 changed entries per decision, median"
    undo = "decisions: an undo is exact"
    if not rows:
        yield from ((name, None, "") for name in (mean, case, many, few, undo))
        return
    change = np.array([row["change"] for row in rows])
    settings = {row["setting"] for row in rows}
    yield mean, change.mean() >= 0, f"{change.mean():+.2f} in {len(rows)} cases of {len(settings)} settings"
    low = [row for row in rows if row["change"] + row["interval"] < -0.3]
    worst = min(rows, key=lambda row: row["change"])
    about = f"{worst['setting']} {worst['preset']}, {worst['decided']} decisions"
    lowest = f"lowest {worst['change']:+.2f} ± {worst['interval']:.2f} ({about})"
    yield case, not low, f"{len(low)} below; {lowest}"
    thousand = np.array([row["change"] for row in rows if row["decided"] == 1000])
    if len(thousand):
        yield many, thousand.mean() >= 1, f"{thousand.mean():+.2f} in {len(thousand)} cases"
    else:
        yield many, None, ""
    median = float(np.median([row["changed per decision"] for row in rows]))
    yield few, median <= 5, f"{median:.2f}"
    exact = sum(row["undo exact"] for row in rows)
    yield undo, exact == len(rows), f"{exact} of {len(rows)}"


def pooled(row: Row) -> float:
    """P@1 over the words of the test dictionary and of FreeDict."""
    scores = (row["mean"], row.get("other", 0.0))
    return float(np.average(scores, weights=row["words"]))


def seeds(folder: Path) -> Iterator[Verdict]:
    """More seeds never hurt, and auto is never far below a preset."""
    rows = [row for row in rows_of(folder, "never_worse_check.jsonl") if "mean" in row]
    means = {(row["setting"], row["vocabulary"], row["form"]): pooled(row) for row in rows}
    below: dict[str, list[float]] = {"presets": [], "fewer": []}
    failed: dict[str, list[str]] = {"presets": [], "fewer": []}
    for setting, size in sorted({key[:2] for key in means if key[2] == "auto"}):
        pair, _, count = setting.partition(":")
        fewer = {"5k": ("1k", "0"), "1k": ("0",), "0": ()}[count]
        rivals = {
            "presets": [(setting, size, form) for form in ("paper", "best", "careful")],
            "fewer": [(f"{pair}:{other}", size, "auto") for other in fewer],
        }
        for name, others in rivals.items():
            known = [means[other] for other in others if other in means]
            if known:
                below[name].append(max(known) - means[setting, size, "auto"])
                if below[name][-1] > 0.3:
                    failed[name].append(f"{setting} of {size:,} words ({below[name][-1]:.1f})")
    for name, sentence in (("presets", "paper, best and careful"), ("fewer", "auto with fewer seeds")):
        mean = f"{-np.mean(below[name]):+.1f} on average" if below[name] else ""
        found = f"{len(below[name])} settings, {mean}; below: {', '.join(failed[name]) or 'none'}"
        yield f"seeds: auto at least {sentence} - 0.3", not failed[name] if below[name] else None, found


def curve(folder: Path) -> Iterator[Verdict]:
    """More seeds never hurt, on words of other dictionaries and held-out ones; each draw is judged alone."""
    kinds, curves = ("held out", "other"), dict[tuple[str, int, int], dict[int, float]]()
    for row in rows_of(folder, "curve.jsonl"):
        judged = [kind for kind in kinds if kind in row]  # none where a fit failed
        if row["form"] == "auto" and judged:
            words = [row[f"{kind} words"] for kind in judged]
            mean = np.average([np.mean(row[kind]) for kind in judged], weights=words)
            place = row["setting"].partition(":")[0], row["vocabulary"], row.get("draw", 5)
            curves.setdefault(place, {})[row["seeds"]] = float(mean)
    steps, failed = 0, []
    for (pair, size, _), means in curves.items():
        counts = sorted(means)
        for more, fewer in zip(counts[1:], counts[:-1], strict=True):
            steps, lost = steps + 1, means[fewer] - means[more]
            if lost > 0.3:
                failed.append(f"{pair} of {size:,} words, {fewer} to {more} ({lost:.1f})")
    name = "seeds: a step to more of them loses at most 0.3"
    yield name, not failed if steps else None, f"{steps} steps; below: {', '.join(failed) or 'none'}"


def mixings(row: Row) -> tuple[float, float, float, float, float]:
    """λ by the present rule and its P@1; P@1 of the best of 0, 0.1, ..., and that λ; P@1 of λ = 0."""
    usual = DEMO_MIXING if row["tuning"] == "demo" else PRESETS[OFFLINE_ENCODER].mixing
    taken = choose_mixing({float(one): np.array(words) for one, words in row["curve"].items()}, usual)
    kinds = [kind for kind in row["fixed"] if row["words"][kind]]
    grid = [float(one) for one in row["fixed"][kinds[0]]]
    weights = [row["words"][kind] for kind in kinds]
    fixed = np.average([list(row["fixed"][kind].values()) for kind in kinds], axis=0, weights=weights)
    tenths = [place for place, one in enumerate(grid) if round(20 * one) % 2 == 0]
    best, place = max((float(fixed[place]), grid[place]) for place in tenths)
    return taken, float(np.interp(taken, grid, fixed)), best, place, float(fixed[0])


def mixing(folder: Path) -> Iterator[Verdict]:
    """λ = auto is never far below the best fixed λ."""
    rows = rows_of(folder, "mixing.jsonl")
    most, mean = "λ: never more than 0.7 below the best fixed", "λ: within 0.2 of the best fixed on average"
    if not rows:
        yield most, None, ""
        yield mean, None, ""
        return
    lost = np.array([best - own for _, own, best, *_ in map(mixings, rows)])
    worst = rows[int(lost.argmax())]
    where = f"{worst['setting']}, tuning {worst['tuning']}"
    yield most, lost.max() <= 0.7, f"at most {lost.max():.2f} ({where}), {len(rows)} settings"
    tunings = np.array([row["tuning"] for row in rows])
    parts = ", ".join(f"{one} {lost[tunings == one].mean():.2f}" for one in dict.fromkeys(tunings.tolist()))
    yield mean, lost.mean() <= 0.2, f"{lost.mean():.2f} ({parts})"


def promises(folder: Path) -> Iterator[Verdict]:
    """Expected accuracies hold, and confidences are right on average; also in large vocabularies alone."""
    rows = rows_of(folder, "vocabularies.jsonl")
    yield from promised(rows, "")
    larger = [row for row in rows if row["vocabulary"] >= 40_000]
    if larger:
        yield from promised(larger, " with 40,000 to 200,000 words")


def promised(rows: list[Row], where: str) -> Iterator[Verdict]:
    """The same for some models."""
    directions = "forward", "backward"
    held = []
    for row in rows:
        for direction in directions:
            _, low, high = row[f"expected {direction}"]
            held.append(low <= row[f"p@1 {direction}"] <= high)
    share = bool(np.mean(held) >= 0.9) if held else None
    holds = f"{sum(held)} of {len(held)} directions"
    yield f"promises: the interval holds in 90 % of directions{where}", share, holds
    sizes = sorted({row["vocabulary"] for row in rows})
    for direction in directions:
        requirement = f"promises: calibration error at most 0.05 {direction}{where}"
        if len(rows) < 10:
            yield requirement, None, ""
            continue
        errors, chance = (
            np.array([row[f"{name} {direction}"] for row in rows]) for name in ("ece", "ece by chance")
        )
        of_size = {size: errors[[row["vocabulary"] == size for row in rows]].mean() for size in sizes}
        parts = ", ".join(f"{size:,} words {error:.4f}" for size, error in of_size.items())
        text = f"{errors.mean():.4f} ({parts}), {len(rows)} cases; exact confidences {chance.mean():.3f}"
        yield requirement, bool(errors.mean() <= 0.05), text


def main(arguments: list[str] | None = None) -> int:
    """Print one line per requirement; 1 if one fails."""
    given = sys.argv[1:] if arguments is None else arguments
    folder = Path(given[0]) if given else HERE
    parts: tuple[Callable[[Path], Iterator[Verdict]], ...] = (refine, seeds, curve, mixing, promises)
    failures = 0
    for part in parts:
        for requirement, holds, numbers in part(folder):
            word = "not measured" if holds is None else "pass" if holds else "FAIL"
            failures += holds is not None and not holds
            print(f"{word:12s}  {requirement}: {numbers}")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
