"""A spaCy pipeline component that gives every token, and every phrase of the vocabulary, its translations.

    nlp = spacy.blank("en")
    nlp.add_pipe("bilex", config={"model": "en-fi"})
    doc = nlp("the old house in new york")
    [token._.translations for token in doc]
    [(span.text, span._.translations) for span in doc.spans["bilex"]]

spaCy finds the component by its entry point; nothing needs to be imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup, Token

from bilex.model import Answer, Translator
from bilex.vectors.phrases import unit_of

EXTENSION = "translations"
SPANS = "bilex"
_MOST_WORDS = 5


@Language.factory(
    "bilex",
    assigns=[f"token._.{EXTENSION}", f"span._.{EXTENSION}", "doc.spans"],
    default_config={
        "model": "",
        "source": None,
        "target": None,
        "k": 3,
        "min_confidence": None,
        "use_lemmas": True,
    },
)
def make_component(
    nlp: Language,
    name: str,
    model: str,
    source: str | None,
    target: str | None,
    k: int,
    min_confidence: float | None,
    use_lemmas: bool,
) -> TranslationComponent:
    """Make the component, as `nlp.add_pipe("bilex", config=...)` does.

    Args:
        nlp: The pipeline; its language is that of the words where `source` names none.
        name: The component's name in the pipeline.
        model: A model folder of two languages or of many.
        source: The language of the texts; needed for a model of many only if spaCy's code is another.
        target: The language to translate to; needed for a model of many.
        k: How many translations per token.
        min_confidence: Leave out translations of less confidence than this; known ones stay.
        use_lemmas: Whether a token that is not in the vocabulary is looked up by its lemma.

    Raises:
        BilexError: The model cannot be opened, or does not hold the languages.
    """
    from bilex.model.many import open_pair

    translator, direction = open_pair(model, source or (nlp.lang if target else None), target)
    return TranslationComponent(translator, direction, k, min_confidence, use_lemmas)


class TranslationComponent:
    """Sets `token._.translations`: dictionaries with word, score, confidence, rank and known, best first.

    Tokens that are not in the vocabulary, numbers and punctuation have none. Phrases of the vocabulary, of
    up to five words, longest first, become the spans of `doc.spans["bilex"]`, with translations too.
    """

    def __init__(
        self, translator: Translator, direction: Any, k: int, min_confidence: float | None, use_lemmas: bool
    ) -> None:
        self._translator, self._direction, self._k = translator, direction, k
        self._min_confidence, self._use_lemmas = min_confidence, use_lemmas
        for kind in (Token, Span):
            if not kind.has_extension(EXTENSION):
                kind.set_extension(EXTENSION, default=())

    def __call__(self, doc: Doc) -> Doc:
        """Translate the tokens of a text, each distinct one once."""
        vocabulary = self._translator.space.sides(self._direction)[0]
        tokens = [(token, self._known(token, vocabulary)) for token in doc]
        phrases = list(_phrases(doc, vocabulary.key_to_index))
        words = list(dict.fromkeys(word for _, word in (*tokens, *phrases) if word is not None))
        answers = self._translator.translate(words, self._k, direction=self._direction)
        found = dict(zip(words, map(self._chosen, answers), strict=True))
        for part, word in (*tokens, *phrases):
            part._.set(EXTENSION, found[word] if word is not None else [])
        doc.spans[SPANS] = SpanGroup(doc, name=SPANS, spans=[span for span, _ in phrases])
        return doc

    def _known(self, token: Token, vocabulary: Any) -> str | None:
        """The spelling of a token that the vocabulary holds, if any."""
        spellings = (token.text, token.lower_, token.lemma_ if self._use_lemmas else "")
        return next((word for word in spellings if token.is_alpha and word and word in vocabulary), None)

    def _chosen(self, answer: Answer) -> list[dict[str, Any]]:
        kept = answer if self._min_confidence is None else answer.confident(self._min_confidence)
        return [dict(vars(translation)) for translation in kept]


def _phrases(doc: Doc, vocabulary: Mapping[str, int]) -> Iterator[tuple[Span, str]]:
    """The phrases of a text that a vocabulary holds, longest first, none inside another, with their units."""
    start = 0
    while start < len(doc):
        for length in range(min(_MOST_WORDS, len(doc) - start), 1, -1):
            text = doc[start : start + length].text
            unit = unit_of(text, vocabulary) or unit_of(text.lower(), vocabulary)
            if unit is not None:
                yield doc[start : start + length], unit
                start += length - 1
                break
        start += 1
