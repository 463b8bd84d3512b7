"""A dictionary of several languages, for `bilex lexicon --to fi ru fr`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from bilex.core.errors import BilexError


def write_polyglot(
    model: str,
    source: str | None,
    targets: Sequence[str],
    device: str,
    output: str | None,
    form: str,
    options: dict[str, Any],
) -> None:
    """Write every word of a language with its translations into several others.

    Args:
        model: A model of many languages.
        source: What `--from` says.
        targets: What `--to` says.
        device: Where searches run.
        output: The file to write; None for stdout.
        form: The format.
        options: Further arguments of `ManyLanguages.lexicon`.

    Raises:
        BilexError: The model holds two languages only, --from was left out, or the format has no columns for
            several languages.
    """
    from bilex.model import Translator
    from bilex.model.many.core import open_model
    from bilex.model.many.polyglot import check_form

    check_form(form)
    opened = open_model(model, device)
    if isinstance(opened, Translator):
        raise BilexError(
            f"{model}: holds two languages, and {len(targets)} were named after --to; join models with "
            "'bilex join' first."
        )
    if source is None:
        raise BilexError(
            f"{model}: holds {', '.join(opened.languages)}; say whose words are translated with --from."
        )
    found = opened.lexicon(source, targets, **options)
    if output is None:
        sys.stdout.write(found.text(form))
        return
    found.save(output, form)
    sys.stderr.write(f"Wrote {len(found):,} words in {1 + len(targets)} languages to {output}.\n")
