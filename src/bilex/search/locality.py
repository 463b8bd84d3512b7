"""Putting rows that resemble each other side by side: what one needs is still in the cache for the next."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_TOGETHER = 32
_STEPS = 6


def near_together(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """An order of the rows in which neighbours resemble each other.

    The rows are halved along the direction in which they differ most, and each half again, down to a few.
    It decides how long work over the rows takes, never what comes out.
    """
    start = np.asarray(np.random.default_rng(0).standard_normal(rows.shape[1]), np.float32)
    halves, groups = [np.arange(len(rows))], []
    while halves:
        group = halves.pop()
        if len(group) <= _TOGETHER:
            groups.append(group)
            continue
        centred = rows[group] - rows[group].mean(axis=0)
        direction = start
        for _ in range(_STEPS):
            direction = centred.T @ (centred @ direction)
            direction /= max(float(np.linalg.norm(direction)), 1e-30)
        order = np.argsort(centred @ direction, kind="stable")
        half = len(order) // 2
        halves += [group[order[half:]], group[order[:half]]]
    return np.concatenate(groups)
