"""Stage C1 (Algorithm 1 of the paper) as plainly as it can be written, in torch with autograd.

    python examples/plain_c1.py en.vec fi.vec seeds.tsv --test test.tsv --words 10000

`bilex.C1(preset="paper")` learns the same maps, many times faster: it has the gradient in closed form and
keeps a pool of candidates for the hard negatives. The tests compare the two.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from bilex import Lexicon, WordVectors


@dataclass(frozen=True)
class Constants:
    """The paper's names, and its values for 5,000 seeds; for 1,000 use FEW_SEEDS."""

    n_iter: int = 2
    n_cl: int = 201
    n_neg: int = 150
    n_freq: int = 60_000
    n_aug: int = 10_000
    learning_rate: float = 1.5
    gamma: float = 0.99
    contrast_on_augmented: bool = False
    negative_words: int = 60_000


FEW_SEEDS = Constants(3, 51, 60, 20_000, 6_000, 2.0, 1.0, True)


def advanced_mapping(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Whiten, rotate, re-weight and de-whiten the vectors of translation pairs."""
    x, y = x.double(), y.double()

    def whitening(rows: Tensor) -> Tensor:
        _, s, v = torch.linalg.svd(rows, full_matrices=False)
        inverse: Tensor = v.T @ torch.diag(1 / s) @ v
        return inverse

    a_x, a_y = whitening(x), whitening(y)
    p, s, q = torch.linalg.svd((x @ a_x).T @ (y @ a_y))
    q, root = q.T, torch.diag(s.sqrt())
    w_x = a_x @ p @ root @ p.T @ torch.linalg.inv(a_x) @ p
    w_y = a_y @ q @ root @ q.T @ torch.linalg.inv(a_y) @ q
    return w_x.float(), w_y.float()


def new_pairs(x: Tensor, y: Tensor, seeds: Tensor, constants: Constants) -> Tensor:
    """D_add: the surest translations of the frequent words, both ways, without words of the seeds."""

    def best(queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        r_keys = (keys @ queries.T).topk(10).values.mean(1)
        score, answer = (2 * queries[: constants.n_freq] @ keys.T - r_keys).max(1)
        order = score.argsort(descending=True, stable=True)[: constants.n_aug]
        return order, answer[order]

    source, target = best(x, y)
    forward = list(zip(source.tolist(), target.tolist(), strict=True))
    target, source = best(y, x)
    backward = list(zip(source.tolist(), target.tolist(), strict=True))
    sources, targets = set(seeds[:, 0].tolist()), set(seeds[:, 1].tolist())
    both = dict.fromkeys([*forward, *backward])
    kept = [(a, b) for a, b in both if a not in sources and b not in targets]
    return torch.tensor(kept, dtype=torch.long).reshape(-1, 2)


def loss(x: Tensor, y: Tensor, pairs: Tensor, w_x: Tensor, w_y: Tensor, constants: Constants) -> Tensor:
    """InfoNCE of the pairs against their hard negatives in the current maps, norms taken as constants."""

    def unit(rows: Tensor, matrix: Tensor) -> Tensor:
        image = rows @ matrix
        return torch.div(image, image.norm(dim=1, keepdim=True).detach())

    def hard_negatives(queries: Tensor, keys: Tensor, own: Tensor) -> Tensor:
        similarity = (queries @ keys.T).detach()
        inside = own < len(keys)
        similarity[inside.nonzero()[:, 0], own[inside]] = -torch.inf
        return similarity.topk(constants.n_neg).indices

    a, b = unit(x[pairs[:, 0]], w_x), unit(y[pairs[:, 1]], w_y)
    keys_x, keys_y = unit(x[: constants.negative_words], w_x), unit(y[: constants.negative_words], w_y)
    of_target, of_source = hard_negatives(a, keys_y, pairs[:, 1]), hard_negatives(b, keys_x, pairs[:, 0])
    positive = (a * b).sum(1, keepdim=True)
    logits = [positive, (a @ keys_y.T).gather(1, of_target), (b @ keys_x.T).gather(1, of_source)]
    return cross_entropy(torch.cat(logits, 1), torch.zeros(len(pairs), dtype=torch.long))


def plain_c1(x: Tensor, y: Tensor, seeds: Tensor, constants: Constants) -> tuple[Tensor, Tensor]:
    """The two maps W_x and W_y.

    Args:
        x: Source vectors, most frequent words first.
        y: Target vectors likewise.
        seeds: D_0, as pairs of rows.
        constants: The constants.
    """
    x, y, dictionary = normalize(x), normalize(y), seeds
    w_x = w_y = torch.empty(0)
    for iteration in range(constants.n_iter):
        if iteration:
            found = new_pairs(normalize(x @ w_x), normalize(y @ w_y), seeds, constants)
            dictionary = torch.cat([seeds, found])
        w_x, w_y = advanced_mapping(x[dictionary[:, 0]], y[dictionary[:, 1]])
        contrasted = dictionary if constants.contrast_on_augmented else seeds
        for update in range(constants.n_cl):
            w_x.requires_grad_(), w_y.requires_grad_()
            gradients = torch.autograd.grad(loss(x, y, contrasted, w_x, w_y, constants), (w_x, w_y))
            norm = torch.stack([part.norm() for part in gradients]).norm()
            step = constants.learning_rate * constants.gamma**update * min(1.0, 0.15 / float(norm + 1e-6))
            w_x, w_y = (w.detach() - step * part for w, part in zip((w_x, w_y), gradients, strict=True))
    return w_x, w_y


def main(arguments: Sequence[str] | None = None) -> None:
    """Learn the maps and print P@1 of a test dictionary, by nearest neighbour."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("seeds", type=Path)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--words", type=int, default=20_000)
    options = parser.parse_args(arguments)
    source, target = (
        WordVectors.load(path, limit=options.words) for path in (options.source, options.target)
    )
    rows = source.key_to_index, target.key_to_index
    seeds, test = (
        torch.from_numpy(Lexicon.load(path).index(*rows)) for path in (options.seeds, options.test)
    )
    x, y = (torch.tensor(side.vectors[:], dtype=torch.float32) for side in (source, target))
    constants = Constants() if len(seeds) >= 2236 else FEW_SEEDS
    w_x, w_y = plain_c1(x, y, seeds, constants)
    answers = (normalize(x @ w_x)[test[:, 0]] @ normalize(y @ w_y).T).argmax(1)
    right = set(test[answers == test[:, 1], 0].tolist())
    print(f"P@1 {100 * len(right) / len(set(test[:, 0].tolist())):.1f}")


if __name__ == "__main__":
    main()
