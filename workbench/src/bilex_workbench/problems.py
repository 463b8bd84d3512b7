"""An answer that is an error: a status of HTTP and one sentence."""

from __future__ import annotations

import re
from typing import Any

from bilex.core.errors import BilexError

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
LONGEST_WORD = 1000  # characters; longer words are neither shown nor taken
MOST_ANSWERS = 100  # of one word


ANSWERED = {"json_schema_serialization_defaults_required": True}  # of a dataclass that is an answer


class ProblemError(BilexError):
    """A request that cannot be served."""

    def __init__(self, status: int, sentence: str, more: dict[str, Any] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.more = status, more or {}


def not_ready() -> ProblemError:
    """The answer while there is no model."""
    return ProblemError(503, "No model is open yet; wait until it is loaded, or make one first.")
