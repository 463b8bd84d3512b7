"""What `bilex align --dry-run` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bilex.cli.options import write_json_line

if TYPE_CHECKING:
    from bilex.aligners.base import Aligner
    from bilex.lexicon import Lexicon
    from bilex.vectors import WordVectors

_SHOWN = 5  # missing words of each language


def show_plan(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    languages: tuple[str | None, str | None],
    *,
    lm: str | None,
    as_json: bool,
) -> None:
    """Show what a fit would work on.

    Args:
        aligner: The method with its settings.
        source: Source vectors.
        target: Target vectors.
        lexicon: Seed pairs.
        languages: The two languages.
        lm: The language model.
        as_json: Whether to write JSON.
    """
    from bilex.core.languages import language_name

    plan: dict[str, Any] = {
        "source_language": languages[0],
        "target_language": languages[1],
        "source_words": len(source),
        "target_words": len(target),
        "dimensions": [source.dim, target.dim],
        "method": aligner.name,
        "language_model": lm,
    }
    if lexicon is not None:
        lexicon = lexicon.as_units(source.key_to_index, target.key_to_index)
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
    table = Table(title="Nothing is made: this is what would be.", title_justify="left", show_header=False)
    for name, value in rows.items():
        table.add_row(name, value)
    show(table)
