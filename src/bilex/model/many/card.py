"""The card of a model of many languages, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bilex.core.languages import language_name

if TYPE_CHECKING:
    from bilex.model.many.core import ManyLanguages


def card(many: ManyLanguages) -> str:
    """The README.md of a model folder."""
    made = many.provenance
    names = [language_name(code) for code in many.languages]
    lines = [
        f"# A bilex translation model: {', '.join(names[:-1])} and {names[-1]}",
        "",
        "All languages are in one space: translate from any to any.",
        "",
        "## From what",
        "",
        "| language | code | vectors | words |",
        "|---|---|---|---|",
        *(
            f"| {name} | {code} | {made.files.get(code) or 'given in a program'} | {len(words):,} |"
            for name, (code, words) in zip(names, many.vocabularies.items(), strict=True)
        ),
        "",
        "| languages | seed pairs | learned from |",
        "|---|---|---|",
        *(f"| {a}-{b} | {len(seeds):,} | {seeds.name} |" for (a, b), seeds in many.seeds.items()),
        "",
        f"Words are {'lower-cased' if many.lowercase else 'in their own case'}.",
        "",
        "## How",
        "",
        f"{made.method_summary}; made with bilex {made.bilex_version} on {made.made}.",
        "",
        "## How well",
        "",
        *_how_well(many),
        "",
        "## Use",
        "",
        "```",
        f"bilex translate THIS_FOLDER WORD --from {many.languages[0]} --to {many.languages[1]}",
        f"bilex lexicon THIS_FOLDER --from {many.languages[0]} --to {' '.join(many.languages[1:])} -o FILE",
        "bilex evaluate THIS_FOLDER --tests FOLDER_OF_TEST_DICTIONARIES",
        "```",
    ]
    return "\n".join(lines) + "\n"


def _how_well(many: ManyLanguages) -> list[str]:
    """P@1 of held-out seeds of each two languages."""
    rows = []
    for (a, b), calibration in many.calibrations.items():
        for (direction, method), part in calibration.parts.items():
            if method == "csls":
                asked = f"{a} to {b}" if direction == "forward" else f"{b} to {a}"
                rows.append(f"| {asked} | {part.words} | {part.accuracy:.1%} |")
    if not rows:
        return ["Not measured: no seeds were held out."]
    return [
        "On seed words that a second fit had not seen (CSLS); no test dictionary was read.",
        "",
        "| direction | held-out words | P@1 |",
        "|---|---|---|",
        *rows,
    ]
