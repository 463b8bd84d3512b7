"""The plain way to compute a C1 update, against which ours is timed.

    python -m research.plain_c1 DATA --pair fi-ru --seeds 5k --updates 3

The plain way: float32 products with all 60,000 keys of both sides, torch.topk, and the closed-form gradient
from a scipy sparse matrix of all logits. Both ways start from the same maps, take the same updates and must
find the same loss; the ratio is that of whole fits, with our updates timed over the first round.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch

from bilex.aligners.advanced import advanced_maps
from bilex.aligners.c1_settings import constants_for
from bilex.aligners.contrast import Contrast, Words, forbidden_partners
from research.packed import read_dictionary, read_vectors

Maps = tuple[torch.Tensor, torch.Tensor]


def plain_step(
    x: torch.Tensor, y: torch.Tensor, pairs: npt.NDArray[np.int64], maps: Maps, negatives: int, keys: int
) -> tuple[float, torch.Tensor, torch.Tensor]:
    """Loss and gradients by full products, topk and sparse products."""
    n = len(pairs)
    sides = []
    for rows, matrix in zip((x[:keys], y[:keys]), maps, strict=True):
        image = rows @ matrix
        inverse = 1 / image.norm(dim=1, keepdim=True)
        sides.append((rows * inverse, image * inverse))
    (x_bar, x_hat), (y_bar, y_hat) = sides
    source, target = torch.from_numpy(pairs[:, 0]), torch.from_numpy(pairs[:, 1])
    found = []
    for query_side, key_side, own in ((x_hat[source], y_hat, target), (y_hat[target], x_hat, source)):
        best = [
            _top(query_side[i : i + 512] @ key_side.T, own[i : i + 512], negatives) for i in range(0, n, 512)
        ]
        found.append([torch.cat(parts) for parts in zip(*best, strict=True)])
    positive = (x_hat[source] * y_hat[target]).sum(1, keepdim=True)
    logits = torch.cat([positive, found[0][0], found[1][0]], 1)
    p = torch.softmax(logits, 1)
    loss = float(-torch.log(p[:, 0]).mean())
    p[:, 0] -= 1
    p /= n
    rows = torch.cat([source[:, None], source[:, None].expand(-1, negatives), found[1][1]], 1)
    columns = torch.cat([target[:, None], found[0][1], target[:, None].expand(-1, negatives)], 1)
    graph = scipy.sparse.csr_matrix(
        (p.numpy().ravel(), (rows.numpy().ravel(), columns.numpy().ravel())), shape=(len(x_bar), len(y_bar))
    )
    at_source, at_target = torch.from_numpy(graph @ y_hat.numpy()), torch.from_numpy(graph.T @ x_hat.numpy())
    return loss, x_bar.T @ at_source, y_bar.T @ at_target


def _top(scores: torch.Tensor, own: torch.Tensor, negatives: int) -> tuple[torch.Tensor, torch.Tensor]:
    scores[torch.arange(len(own)), own] = -2
    return tuple(scores.topk(negatives, dim=1))  # type: ignore[return-value]


def main(arguments: list[str] | None = None) -> None:
    """Print the seconds of an update both ways, and the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--pair", default="fi-ru")
    parser.add_argument("--seeds", default="5k")
    parser.add_argument("--updates", type=int, default=3, help="of the plain way")
    parser.add_argument("--words", type=int, default=60_000)
    options = parser.parse_args(arguments)
    first, second = options.pair.split("-")
    source, target = (read_vectors(options.data, name, options.words) for name in (first, second))
    lexicon = read_dictionary(options.data, options.pair, f"train.freq.{options.seeds}")
    pairs = lexicon.index(source.key_to_index, target.key_to_index)
    x, y = torch.from_numpy(np.array(source.vectors)), torch.from_numpy(np.array(target.vectors))
    start = advanced_maps(x[pairs[:, 0]], y[pairs[:, 1]])
    maps: Maps = (start.source.float(), start.target.float())
    constants = constants_for("auto", len(pairs), min(len(x), len(y)))
    forbidden = forbidden_partners(pairs, options.words, all_known=False)
    words = Words.of(x, pairs[:, 0], options.words), Words.of(y, pairs[:, 1], options.words)
    contrast = Contrast(*words, *forbidden, constants.negatives)
    contrast.step(*maps)
    contrast = Contrast(*words, *forbidden, constants.negatives)
    plain, ours, disagreement = [], [], 0.0
    for update in range(constants.updates):
        started = time.perf_counter()
        step = contrast.step(*maps)
        ours.append(time.perf_counter() - started)
        if update < options.updates:
            started = time.perf_counter()
            loss, by_source, _ = plain_step(x, y, pairs, maps, constants.negatives, options.words)
            plain.append(time.perf_counter() - started)
            off = float((by_source - step.source).norm() / step.source.norm())
            disagreement = max(disagreement, abs(loss - float(step.loss)), off)
        rate = constants.learning_rate * constants.decay**update
        norm = float((step.source.square().sum() + step.target.square().sum()).sqrt())
        amount = rate * min(1.0, 0.15 / (norm + 1e-6))
        maps = (maps[0] - amount * step.source, maps[1] - amount * step.target)
    report = {
        "pairs": len(pairs),
        "plain, seconds an update": round(float(np.median(plain)), 3),
        "ours, seconds an update (mean of a round)": round(float(np.mean(ours)), 3),
        "ours, last tenth of the round": round(float(np.mean(ours[-len(ours) // 10 :])), 3),
        "ratio plain / ours": round(float(np.median(plain) / np.mean(ours)), 2),
        "largest disagreement of loss or gradient": disagreement,
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
