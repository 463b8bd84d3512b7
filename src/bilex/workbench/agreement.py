"""Do two people judge alike? Cohen's κ on whether the model's first translation is right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from bilex.workbench.decisions import Decision, standing
from bilex.workbench.store import Store


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


def agreement(store: Store) -> dict[str, Any]:
    """Agreement of every two people who decided on the same words, and of all such pairs together."""
    answers: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    for decisions in _by_source(store):
        judged = {d.reviewer: _says_right(d) for d in standing(decisions) if d.verdict != "skip"}
        for one, other in combinations(sorted(judged), 2):
            answers.setdefault((one, other), []).append((judged[one], judged[other]))
    everything = [pair for pairs in answers.values() for pair in pairs]
    return {
        "pairs": [{"reviewers": list(names), **_summary(pairs)} for names, pairs in sorted(answers.items())],
        "overall": _summary(everything),
    }


def _says_right(decision: Decision) -> bool:
    return decision.verdict == "accept" and decision.best in decision.accepted


def _by_source(store: Store) -> Iterable[list[Decision]]:
    about: dict[str, list[Decision]] = {}
    rows = store.all("SELECT * FROM decisions WHERE undone IS NULL AND kind <> 'resolution' ORDER BY id")
    for row in rows:
        about.setdefault(row["source"], []).append(Decision.from_row(row))
    return about.values()


def _summary(pairs: Sequence[tuple[bool, bool]]) -> dict[str, Any]:
    agreed = sum(a == b for a, b in pairs)
    return {
        "entries": len(pairs),
        "agreed": agreed,
        "share": agreed / len(pairs) if pairs else None,
        "kappa": kappa(pairs),
    }
