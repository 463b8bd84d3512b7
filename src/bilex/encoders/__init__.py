"""Words to vectors with a multilingual language model, and tuning it on pairs and negatives (stage C2).

Importing this package is light: torch and transformers are loaded when the encoder is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bilex.core.lazy import lazy_exports

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder

__all__ = ["WordEncoder"]

__getattr__, __dir__ = lazy_exports(__name__, {"WordEncoder": "bilex.encoders.model"})
