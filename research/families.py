"""All methods on both families of vectors, side by side.

    python -m research.families DATA                                  what is still missing, then the page
    python -m research.families DATA --methods rcsls fipp --settings en-fi:5k europarl/de-it:5k
    python -m research.families DATA --only-page                      the page anew, nothing measured

The families are web text (English, Finnish, French, Russian) and parliament proceedings (German, French,
Italian; settings that begin with europarl/). A method is an aligner of `bilex methods` as it is by default;
c1 stands there with each of its forms, as "c1 (best)". Each fit is one call of `bilex.fit.fit`, adds a
line to the results file, and is not made again. The tables go into research/methods.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bilex.aligners import get_method, methods
from bilex.aligners.base import Aligner
from bilex.core.errors import BilexError
from bilex.fit import fit
from research.evidence import ALL, measured, read_problem
from research.family_tables import write_families

RESULTS = Path("research/results/families.jsonl")
PAGE = Path("research/methods.md")
FORMS = ("paper", "best", "careful", "auto")
NO_SEEDS = "0"
Row = dict[str, Any]


def everything() -> list[str]:
    """All methods by the names of the tables, c1 last."""
    return [name for name in methods() if name != "c1"] + [f"c1 ({form})" for form in FORMS]


def aligner_for(name: str, device: str) -> Aligner:
    """A method by its name in the tables."""
    method, _, preset = name.partition(" ")
    settings = {"preset": preset.strip("()")} if preset else {}
    return get_method(method)(device=device).set_params(**settings)


def fits_together(name: str, setting: str) -> bool:
    """Whether a method is run with the seeds of a setting: those that use none are run without."""
    without = setting.endswith(f":{NO_SEEDS}")
    if name.startswith("c1"):
        return True
    return without != get_method(name).needs_seeds


def measure(options: argparse.Namespace) -> None:
    """Make every wanted fit that the results file does not hold yet."""
    known = {(row["method"], row["setting"]) for row in read_rows(options.results)}
    options.results.parent.mkdir(parents=True, exist_ok=True)
    for setting in options.settings:
        wanted = [
            name for name in options.methods if (name, setting) not in known and fits_together(name, setting)
        ]
        if not wanted:
            continue
        problem = read_problem(options.data, setting, options.limit)
        for name in wanted:
            aligner = aligner_for(name, options.device)
            calibrate = name == "c1 (auto)" and problem.seeds is not None  # as by default
            started = time.perf_counter()
            try:
                fitted = fit(aligner, *problem[:3], calibrate=calibrate)
            except BilexError as error:
                print(f"failed: {name}, {setting}: {error}", file=sys.stderr, flush=True)
                continue
            row: Row = {
                "method": name,
                "setting": setting,
                "limit": options.limit,
                "seconds": round(time.perf_counter() - started, 2),
                **measured(fitted, problem.test),
            }
            print(json.dumps(row), flush=True)
            with options.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def read_rows(path: Path) -> list[Row]:
    """The results so far, of each fit the last."""
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return list({(row["method"], row["setting"]): row for row in rows}.values())


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing and write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder with vectors/, europarl/ and dictionaries/")
    parser.add_argument("--settings", nargs="+", default=ALL, help="as fi-ru:5k or europarl/de-it:0")
    parser.add_argument("--methods", nargs="+", default=everything(), choices=everything(), metavar="NAME")
    parser.add_argument("--limit", type=int, help="only the most frequent words of each language")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--only-page", action="store_true", help="measure nothing")
    parser.add_argument("--no-page", action="store_true", help="write no tables")
    options = parser.parse_args(arguments)
    if not options.only_page:
        measure(options)
    if not options.no_page:
        write_families(options.page, read_rows(options.results))


if __name__ == "__main__":
    main()
