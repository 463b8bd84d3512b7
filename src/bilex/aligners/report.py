"""The report of a fit.

A method that reports more declares a subclass in its module, and the type of its `report_`:

    report_: MineReport = field(init=False, compare=False)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bilex.core.typed_json import other_entries


@dataclass(frozen=True, kw_only=True)
class AlignerReport:
    """The report of every method.

    Attributes:
        seed_pairs: Pairs of the seed dictionary.
        seed_pairs_used: Of these, the pairs with both words in the vectors.
        warnings: Sentences about anything unusual.
    """

    seed_pairs: int = 0
    seed_pairs_used: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StoredReport(AlignerReport):
    """The report of a model that was opened, whose method need not be imported or installed for that.

    Attributes:
        more: What the method reports beside what every method does, as plain values.
    """

    more: Mapping[str, Any] = other_entries()
