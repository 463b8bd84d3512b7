"""What `bilex align` says before it starts: how long it will take, and, with --dry-run, all it would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bilex.cli.options import write_json_line
from bilex.core.progress import duration

if TYPE_CHECKING:
    from bilex.aligners.base import Aligner
    from bilex.core.progress import Progress
    from bilex.lexicon import Lexicon
    from bilex.vectors import WordVectors

_WORTH_SAYING = 20.0
_SHOWN = 5  # missing words of each language


def say_how_long(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    progress: Progress,
    *,
    calibrate: bool,
    lm: str | None,
) -> None:
    """Say how long a fit will take, if that is more than 20 seconds.

    Args:
        aligner: The method with its settings.
        source: Source vectors.
        target: Target vectors.
        lexicon: Seed pairs.
        progress: Receives what there is to say.
        calibrate: Whether confidences are learned.
        lm: The language model, whose time is reported when it starts.
    """
    from bilex.model.estimate import estimated_seconds

    seconds = estimated_seconds(aligner, source, target, lexicon, calibrate=calibrate)
    if seconds > _WORTH_SAYING:
        slower = "quick" in aligner.presets and aligner.settings()["preset"] != "quick"
        quick = "; --preset quick is quicker" if slower else ""
        more = f", then {lm}, which says its own time" if lm else ""
        progress.say(
            f"This will take about {duration(seconds)} on this machine{more} "
            f"(estimated from a short trial{quick})."
        )


def show_plan(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    languages: tuple[str | None, str | None],
    *,
    calibrate: bool,
    lm: str | None,
    as_json: bool,
) -> None:
    """What a fit would work on and how long it would take; the arguments are those of `say_how_long`."""
    from bilex.core.languages import language_name
    from bilex.model.estimate import estimated_seconds

    seconds = estimated_seconds(aligner, source, target, lexicon, calibrate=calibrate)
    plan: dict[str, Any] = {
        "source_language": languages[0],
        "target_language": languages[1],
        "source_words": len(source),
        "target_words": len(target),
        "dimensions": [source.dim, target.dim],
        "method": aligner.name,
        "language_model": lm,
    }
    coverage = None if lexicon is None else lexicon.coverage(source.key_to_index, target.key_to_index)
    if lexicon is not None and coverage is not None:
        plan |= {
            "seeds": lexicon.name,
            "seed_pairs": len(lexicon),
            "seed_pairs_covered": coverage.covered,
            "rejected_pairs": len(lexicon.rejected),
            "missing_source_words": list(coverage.source_missing[:_SHOWN]),
            "missing_target_words": list(coverage.target_missing[:_SHOWN]),
        }
    plan["seconds"] = round(seconds, 1)
    if as_json:
        write_json_line(plan, indent=2)
        return
    from rich.table import Table

    from bilex.cli.console import show

    rows = {
        "languages": " – ".join(
            language_name(code) if code else side
            for code, side in zip(languages, ("source", "target"), strict=True)
        ),
        "words": f"{len(source):,} × {len(target):,}, {source.dim} and {target.dim} numbers each",
        "method": aligner.name + (f" and {lm}" if lm else ""),
    }
    if lexicon is not None and coverage is not None:
        missing = [*coverage.source_missing[:_SHOWN], *coverage.target_missing[:_SHOWN]]
        rows["seeds"] = f"{coverage.covered:,} of {len(lexicon):,} pairs have both words in the vectors"
        if missing:
            rows["not in the vectors"] = ", ".join(missing) + ", ..."
        if lexicon.rejected:
            rows["rejected pairs"] = f"{len(lexicon.rejected):,}"
    more = f", and {lm} after that, which says its own time when it starts" if lm else ""
    rows["time"] = (f"about {duration(seconds)}" if seconds >= 1 else "a few seconds") + more
    table = Table(title="Nothing is made: this is what would be.", title_justify="left", show_header=False)
    for name, value in rows.items():
        table.add_row(name, value)
    show(table)
