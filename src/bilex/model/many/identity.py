"""What decides a fit of many languages, as one hash, so that no other fit resumes from its checkpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from bilex.aligners.checkpoint import fingerprint
from bilex.lexicon import Lexicon
from bilex.model.many.mapping import Two
from bilex.vectors import WordVectors


def identity_of(
    settings: dict[str, Any], vocabularies: Mapping[str, WordVectors], seeds: Mapping[Two, Lexicon]
) -> str:
    """A hash of the languages, all their vectors and seeds, and the settings but for the device.

    Args:
        settings: All that decides the fit beside the data.
        vocabularies: The vectors of each language.
        seeds: Word pairs by two languages; every language is in one of them.
    """
    digest = hashlib.sha256(repr(list(vocabularies)).encode())
    for (a, b), lexicon in seeds.items():
        places = vocabularies[a].key_to_index, vocabularies[b].key_to_index
        pairs = np.concatenate([lexicon.index(*places), lexicon.rejected_index(*places)])
        digest.update(repr((a, b)).encode())
        digest.update(fingerprint(settings, vocabularies[a], vocabularies[b], pairs).encode())
    return digest.hexdigest()
