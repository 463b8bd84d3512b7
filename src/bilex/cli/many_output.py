"""What the commands that make a model of many languages check and report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bilex.cli.options import write_json_line
from bilex.core.errors import BilexError
from bilex.core.typed_json import as_json

if TYPE_CHECKING:
    from bilex.model.many import ManyLanguages
    from bilex.model.storage import ManyDescription


def check_output(output: str, force: bool, inputs: Sequence[str]) -> None:
    """Make sure, before the work, that the model may be written.

    Raises:
        BilexError: It is an input, a model already and --force was not given, or something else.
    """
    from bilex.core.files import check_not_an_input
    from bilex.model.storage import check_destination, holds_model

    check_not_an_input(output, *inputs)
    check_destination(output)
    if holds_model(output) and not force:
        raise BilexError(f"{output}: is a model already; choose another name, or replace it with --force.")


def _held_out(found: ManyDescription) -> dict[tuple[str, str], list[float]]:
    """P@1 of held-out seeds, forward and backward, by two languages."""
    return {
        two: [round(part.accuracy, 4) for (_, method), part in learned.parts.items() if method == "csls"]
        for two, learned in found.calibrations.items()
        if learned.parts
    }


def summary(found: ManyDescription) -> dict[str, Any]:
    """What a model of many languages is, for people and for JSON."""
    made = found.provenance
    return {
        "languages": dict(found.words),
        "seed_pairs": {f"{a}-{b}": len(seeds) for (a, b), seeds in found.seeds.items()},
        "held_out_p@1": {f"{a}-{b}": shares for (a, b), shares in _held_out(found).items()},
        "method": made.method,
        "report": None if made.report is None else as_json(made.report),
    }


def report_many(many: ManyLanguages, output: str, as_json: bool) -> None:
    """What was made, and what to do next."""
    from bilex.model.storage import ManyDescription

    found = ManyDescription.of(many)
    if as_json:
        write_json_line({"model": output, **summary(found)}, indent=2)
        return
    from bilex.cli.console import show
    from bilex.core.languages import language_name

    for two, (forward, backward) in _held_out(found).items():
        a, b = map(language_name, two)
        show(
            f"Held-out seeds: the first answer is right for {forward:.0%} ({a} to {b}) and {backward:.0%} "
            f"({b} to {a})."
        )
    names = ", ".join(f"{language_name(code)} {words:,}" for code, words in found.words.items())
    first, second = many.languages[:2]
    word = many.vocabularies[first].index_to_key[0]
    show(f"Saved {output}: {names} words. Next: bilex translate {output} {word} --from {first} --to {second}")
