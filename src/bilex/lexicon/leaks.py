"""Which pairs of a test list were already given away in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bilex.lexicon.entries import Pair


@dataclass(frozen=True)
class LeakReport:
    """What a test list shares with a training list; every figure counts distinct things.

    Attributes:
        test_pairs: Distinct pairs of the test list.
        test_sources: Distinct source words of it.
        pairs: Test pairs that also stand in the training list.
        reversed_pairs: Test pairs that stand there the other way round.
        sources: Test source words that are training source words.
        targets: Test target words that are training target words.
        touched: Test pairs that share their source or their target word with the training list.
    """

    test_pairs: int
    test_sources: int
    pairs: tuple[Pair, ...]
    reversed_pairs: tuple[Pair, ...]
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    touched: int

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def sentence(self) -> str:
        """One sentence with the figures."""
        share = len(self.pairs) / self.test_pairs if self.test_pairs else 0.0
        return (
            f"{len(self.pairs)} of {self.test_pairs} test pairs ({share:.1%}) also stand in the training "
            f"dictionary; {len(self.sources)} test source words and {len(self.targets)} test target words "
            "occur there."
        )

    def as_dict(self) -> dict[str, Any]:
        """The figures and the leaked pairs, ready for JSON."""
        return asdict(self)


def find_leaks(test: Sequence[Pair], train: Sequence[Pair]) -> LeakReport:
    """Compare a test list with a training list.

    Args:
        test: The pairs to be tested on.
        train: The pairs learned from.
    """
    known = set(train)
    train_sources = {a for a, _ in train}
    train_targets = {b for _, b in train}
    distinct = list(dict.fromkeys(test))
    sources = list(dict.fromkeys(a for a, _ in distinct))
    targets = dict.fromkeys(b for _, b in distinct)
    return LeakReport(
        test_pairs=len(distinct),
        test_sources=len(sources),
        pairs=tuple(pair for pair in distinct if pair in known),
        reversed_pairs=tuple((a, b) for a, b in distinct if (b, a) in known),
        sources=tuple(word for word in sources if word in train_sources),
        targets=tuple(word for word in targets if word in train_targets),
        touched=sum(a in train_sources or b in train_targets for a, b in distinct),
    )
