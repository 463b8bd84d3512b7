"""Do two people judge alike? Cohen's κ on whether the model's first translation is right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from bilex.core.typed_json import as_json
from bilex_workbench.decisions import Decision, standing
from bilex_workbench.store import Store


@dataclass(frozen=True, kw_only=True)
class Alike:
    """How often two people judged alike.

    Attributes:
        entries: Entries that both decided on.
        agreed: Of these, those on which they agree.
        share: The share of these; None without entries.
        kappa: Cohen's κ; None where it is undefined.
    """

    entries: int
    agreed: int
    share: float | None
    kappa: float | None

    @classmethod
    def of(cls, pairs: Sequence[tuple[bool, bool]]) -> Alike:
        """Counted from the two answers about each entry."""
        agreed = sum(a == b for a, b in pairs)
        share = agreed / len(pairs) if pairs else None
        return cls(entries=len(pairs), agreed=agreed, share=share, kappa=kappa(pairs))


@dataclass(frozen=True)
class Agreement:
    """Agreement of every two people who decided on the same words.

    Attributes:
        pairs: By the names of two people.
        overall: All such pairs together.
    """

    pairs: Mapping[tuple[str, str], Alike]
    overall: Alike

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        pairs = [{"reviewers": list(names), **as_json(alike)} for names, alike in self.pairs.items()]
        return {"pairs": pairs, "overall": as_json(self.overall)}


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Cohen's κ: agreement beyond that of two people who answer at random with their own shares of yes.

    Args:
        pairs: The two answers about each entry.

    Returns:
        κ; None where it is undefined (no entries, or both always say the same one thing).
    """
    if not pairs:
        return None
    agreed = sum(a == b for a, b in pairs) / len(pairs)
    first = sum(a for a, _ in pairs) / len(pairs)
    second = sum(b for _, b in pairs) / len(pairs)
    at_random = first * second + (1 - first) * (1 - second)
    return None if at_random == 1 else (agreed - at_random) / (1 - at_random)


def agreement(store: Store) -> Agreement:
    """Agreement of every two people who decided on the same words, and of all such pairs together."""
    answers: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    for decisions in _by_source(store):
        judged = {d.reviewer: _says_right(d) for d in standing(decisions) if d.verdict != "skip"}
        for one, other in combinations(sorted(judged), 2):
            answers.setdefault((one, other), []).append((judged[one], judged[other]))
    everything = [pair for pairs in answers.values() for pair in pairs]
    by_people = {names: Alike.of(pairs) for names, pairs in sorted(answers.items())}
    return Agreement(by_people, Alike.of(everything))


def _says_right(decision: Decision) -> bool:
    return decision.verdict == "accept" and decision.best in decision.accepted


def _by_source(store: Store) -> Iterable[list[Decision]]:
    about: dict[str, list[Decision]] = {}
    rows = store.all("SELECT * FROM decisions WHERE undone IS NULL AND kind <> 'resolution' ORDER BY id")
    for row in rows:
        about.setdefault(row["source"], []).append(Decision.from_row(row))
    return about.values()
