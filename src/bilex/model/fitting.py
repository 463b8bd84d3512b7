"""From a fitted recipe to a translator."""

from __future__ import annotations

from dataclasses import fields

from bilex.fit.fitted import Fitted
from bilex.model.provenance import Provenance
from bilex.model.subwords import FromSubwords
from bilex.model.translator import Translator
from bilex.model.unknown import OutOfVocabulary, Side
from bilex.vectors import Subwords, WordVectors


def translator_of(
    fitted: Fitted,
    source: WordVectors,
    target: WordVectors,
    *,
    lowercase: bool,
    languages: tuple[str | None, str | None],
) -> Translator:
    """The translator of a fitted recipe; the arguments are those of `Translator.of`."""
    return Translator(
        fitted.space,
        fitted.source_map,
        fitted.target_map,
        fitted.calibration,
        _unknown(fitted, source, target),
        fitted.seeds,
        Provenance(
            **{part.name: getattr(fitted.report, part.name) for part in fields(fitted.report)},
            recipe=fitted.recipe,
            source_language=languages[0],
            target_language=languages[1],
        ),
        lowercase,
    )


def _unknown(fitted: Fitted, source: WordVectors, target: WordVectors) -> list[OutOfVocabulary]:
    """Who reads unknown words: the language model, and fastText's n-grams where a language has them."""
    given: dict[Side, Subwords | None] = {"source": source.subwords, "target": target.subwords}
    ngrams = {side: found for side, found in given.items() if found is not None}
    maps = {"source": fitted.source_map, "target": fitted.target_map}
    subwords = FromSubwords(ngrams, maps) if ngrams else None  # type: ignore[arg-type]
    stage = fitted.stage
    if stage is None:
        return [subwords] if subwords else []
    from bilex.model.encoder import FromEncoder

    return [FromEncoder(lambda: stage.encoder, stage.combination, stage.save_encoder, subwords)]
