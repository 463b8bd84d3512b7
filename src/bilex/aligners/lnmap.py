"""LNMap: two autoencoders, and non-linear mappers between their latent spaces.

Mohiuddin, Bari and Joty, "LNMap: Departures from Isomorphic Assumption in Bilingual Lexicon Induction
Through Non-Linear Mapping in Latent Space" (EMNLP 2020).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn.functional import mse_loss, normalize

from bilex.aligners.base import Aligner, Pairs
from bilex.aligners.maps import Array, Map, MapStep
from bilex.aligners.network_steps import Dense, MappedBesideOwn, OwnBesideMapped, PReLU, Tanh
from bilex.aligners.preparation import Prepared, unit_center_unit
from bilex.device import resolve_device
from bilex.errors import BilexError
from bilex.progress import Progress, Task
from bilex.similarity import csls_top_k, neighbourhoods
from bilex.vectors import WordVectors

Result = TypeVar("Result")


class Language(NamedTuple):
    """What is known of a language: its prepared vectors, its autoencoder and its latent vectors."""

    prepared: Prepared
    rows: torch.Tensor
    encoder: nn.Sequential
    decoder: nn.Sequential
    latent: torch.Tensor


@dataclass(kw_only=True, repr=False)
class LNMap(Aligner):
    """Learn a latent space for each language, and a network that leads from one to the other.

    For each direction a mapper G is trained on the seed pairs to hit the partner, together with a
    mapper F that must lead back to where it came from, in the latent space and, decoded, in the
    language's own. In further rounds, pairs that are each other's best partner join the seeds.

    The two directions have a mapper each. The common space serves both: a source word is
    [G(z_x); z_x], a target word [z_y; F(z_y)], each half of unit length, so that their cosine is the
    mean of the cosines in the two latent spaces.

    The authors name plain SGD at 1e-4 for the mappers. It moves them if squared errors are summed over
    the batch and the dimensions, and does not if they are averaged, so ours are summed; `mapper_rate` and
    `mapper_batch` belong together therefore. The mappers go on from one round to the next, so that later
    rounds need fewer epochs than the first.

    Args:
        hidden: Units of each hidden layer.
        latent: Dimension of the latent spaces.
        dropout: Of the autoencoders' hidden layers.
        mapper_dropout: Of the mappers' hidden layer.
        autoencoder_epochs: Epochs for the autoencoders.
        autoencoder_samples: Words drawn in each of them.
        autoencoder_rate: Adam's learning rate for the autoencoders.
        mapper_epochs: Epochs over the seed pairs.
        round_epochs: Epochs over the pairs of each further round.
        mapper_rate: The learning rate of plain SGD for the mappers.
        batch: Words in a batch of the autoencoders.
        mapper_batch: Pairs in a batch of the mappers.
        rounds: Self-training rounds.
        growth: How many more pairs each round may add to the seeds.
        candidates: Among how many frequent words of each language partners are looked for.
        queries: How many frequent words of each language ask.
        neighbours: k of CSLS.

    Example:
        >>> LNMap(rounds=3).fit(source, target, lexicon)  # doctest: +SKIP
    """

    name = "lnmap"
    summary = "non-linear maps between latent spaces, with self-training; many minutes, best on a GPU"

    hidden: int = 400
    latent: int = 350
    dropout: float = 0.25
    mapper_dropout: float = 0.1
    autoencoder_epochs: int = 25
    autoencoder_samples: int = 100_000
    autoencoder_rate: float = 1e-4
    mapper_epochs: int = 100
    round_epochs: int = 10
    mapper_rate: float = 1e-4
    batch: int = 128
    mapper_batch: int = 128
    rounds: int = 10
    growth: int = 2000
    candidates: int = 30_000
    queries: int = 15_000
    neighbours: int = 10

    def _fit(
        self,
        source: WordVectors,
        target: WordVectors,
        pairs: Pairs,
        progress: Progress,
        checkpoint: Path | None,
    ) -> None:
        for name in ("hidden", "latent", "batch", "mapper_batch", "autoencoder_epochs", "mapper_epochs"):
            if getattr(self, name) < 1:
                raise BilexError(f"{name} is {getattr(self, name)}; method 'lnmap' needs at least 1.")
        device = resolve_device(self.device)
        x, y = _side_by_side(
            device,
            lambda: self._language(source, "source", progress),
            lambda: self._language(target, "target", progress),
        )
        forward, backward = _side_by_side(
            device,
            lambda: self._mapper(x, y, pairs, "forward", progress),
            lambda: self._mapper(y, x, pairs[:, ::-1], "backward", progress),
        )
        self.source_map_ = Map([*_steps(x), MappedBesideOwn(*_parameters(forward))])
        self.target_map_ = Map([*_steps(y), OwnBesideMapped(*_parameters(backward))])

    def _language(self, vectors: WordVectors, side: str, progress: Progress) -> Language:
        """Prepare a language's vectors and train its autoencoder."""
        prepared = unit_center_unit(vectors.vectors)
        device = resolve_device(self.device)
        rows = torch.from_numpy(prepared.rows).to(device)
        random = self._generator(side, device)
        widths = [vectors.dim, self.hidden, self.hidden, self.latent]
        encoder = self._layers(widths, random).append(nn.Tanh())
        decoder = self._layers(widths[::-1], random)
        parameters = [*encoder.parameters(), *decoder.parameters()]
        optimizer = torch.optim.Adam(parameters, self.autoencoder_rate, fused=True)
        with progress.task(f"{side} autoencoder", total=self.autoencoder_epochs) as task:
            for _ in range(self.autoencoder_epochs):
                total = torch.zeros((), device=device)
                chosen = torch.randint(
                    len(rows), (self.autoencoder_samples,), generator=random, device=device
                )
                for numbers in torch.split(chosen, self.batch):
                    batch = rows[numbers]
                    loss = mse_loss(decoder(encoder(batch)), batch)
                    _step(optimizer, loss)
                    total += loss.detach() * len(numbers)
                error = float(total) / len(chosen) * vectors.dim
                task.advance(error=error)
        self.report_[f"{side}_reconstruction_error"] = error
        encoder.eval().requires_grad_(False)
        decoder.eval().requires_grad_(False)
        latent = torch.cat([encoder(part) for part in torch.split(rows, 16384)])
        return Language(prepared, rows, encoder, decoder, latent)

    def _generator(self, use: str, device: torch.device) -> torch.Generator:
        """Chance of its own for each part of the work, so that parts may run side by side."""
        parts = ("source", "target", "forward", "backward")
        return torch.Generator(device).manual_seed(4 * self.seed + parts.index(use))

    def _layers(self, widths: list[int], random: torch.Generator) -> nn.Sequential:
        """Linear layers with PReLU and dropout between them."""
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise(widths):
            activation = nn.PReLU(device=random.device)
            layers += [_linear(before, after, random), activation, Dropout(self.dropout, random)]
        return nn.Sequential(*layers[:-2])

    def _mapper(self, x: Language, y: Language, seeds: Pairs, name: str, progress: Progress) -> nn.Sequential:
        """The mapper from x's latent space to y's, after all rounds of self-training."""
        random = self._generator(name, x.rows.device)
        there, back = self._new_mapper(random), self._new_mapper(random)
        optimizer = torch.optim.SGD([*there.parameters(), *back.parameters()], self.mapper_rate, fused=True)
        pairs = seeds
        epochs = self.mapper_epochs + self.rounds * self.round_epochs
        with progress.task(f"{name} mapper", total=epochs) as task:
            for number in range(self.rounds + 1):
                if number:
                    pairs = np.concatenate([seeds, self._mutual_pairs(there, x, y)[: number * self.growth]])
                wanted = self.round_epochs if number else self.mapper_epochs
                self._train((there, back), optimizer, x, y, pairs, wanted, random, task)
        self.report_[f"{name}_pairs"] = len(pairs)
        return there.eval()

    def _new_mapper(self, random: torch.Generator) -> nn.Sequential:
        return nn.Sequential(
            _linear(self.latent, self.hidden, random),
            nn.Tanh(),
            Dropout(self.mapper_dropout, random),
            _linear(self.hidden, self.latent, random),
        )

    def _train(
        self,
        mappers: tuple[nn.Sequential, nn.Sequential],
        optimizer: torch.optim.Optimizer,
        x: Language,
        y: Language,
        pairs: Pairs,
        epochs: int,
        random: torch.Generator,
        task: Task,
    ) -> None:
        """Some epochs over `pairs`."""
        there, back = mappers
        there.train()
        numbers = torch.from_numpy(np.ascontiguousarray(pairs)).to(x.rows.device)
        for _ in range(epochs):
            order = torch.randperm(len(numbers), generator=random, device=numbers.device)
            total = torch.zeros((), device=numbers.device)
            for batch in torch.split(numbers[order], self.mapper_batch):
                start = x.latent[batch[:, 0]]
                arrived = there(start)
                returned = back(arrived)
                loss = _squared(arrived, y.latent[batch[:, 1]]) + _squared(returned, start)
                loss = loss + _squared(x.decoder(returned), x.rows[batch[:, 0]])
                _step(optimizer, loss)
                total += loss.detach()
            mean = float(total) / len(numbers)
            if not math.isfinite(mean):
                raise BilexError(
                    f"lnmap's mapper diverged at mapper_rate {self.mapper_rate}; use a smaller one."
                )
            task.advance(loss=mean, pairs=len(numbers))

    def _mutual_pairs(self, there: nn.Sequential, x: Language, y: Language) -> Pairs:
        """Frequent words that are each other's best partner by CSLS, most similar first."""
        there.eval()
        with torch.no_grad():
            mapped = normalize(there(x.latent[: self.candidates])).cpu().numpy()
            other = normalize(y.latent[: self.candidates]).cpu().numpy()
        return mutual_best(mapped, other, self.queries, self.neighbours, self.device)


def mutual_best(source: Array, target: Array, queries: int, k: int, device: str) -> Pairs:
    """Pairs of which each is the other's best by CSLS, sorted by falling cosine.

    Args:
        source: Source rows of unit length.
        target: Target rows likewise.
        queries: How many of the first rows of each side ask.
        k: Neighbours in CSLS.
        device: "auto", "cpu" or "cuda".
    """
    r_x, r_y = neighbourhoods(source, target, k, device=device)
    x, y = source[:queries], target[:queries]
    _, forward = csls_top_k(x, target, 1, query_mean=r_x[: len(x)], key_mean=r_y, device=device)
    _, backward = csls_top_k(y, source, 1, query_mean=r_y[: len(y)], key_mean=r_x, device=device)
    best = forward[:, 0]
    inside = best < len(backward)
    mutual = np.flatnonzero(inside & (backward[np.where(inside, best, 0), 0] == np.arange(len(best))))
    cosines = np.einsum("ij,ij->i", source[mutual], target[best[mutual]])
    mutual = mutual[np.argsort(-cosines, kind="stable")]
    return np.stack([mutual, best[mutual]], axis=1)


class Dropout(nn.Module):
    """Sets numbers to zero at random in training, from a generator of its own."""

    def __init__(self, share: float, random: torch.Generator) -> None:
        super().__init__()
        self.share, self.random = share, random

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows with a share of zeros, the rest made larger to make up for them."""
        if not self.training or self.share == 0:
            return rows
        numbers = torch.rand(rows.shape, generator=self.random, device=rows.device)
        return rows * (numbers >= self.share) / (1 - self.share)


def _linear(before: int, after: int, random: torch.Generator) -> nn.Linear:
    """A layer whose numbers start uniformly within ±1/√before."""
    layer = nn.Linear(before, after, device=random.device)
    for part in (layer.weight, layer.bias):
        nn.init.uniform_(part, -(before**-0.5), before**-0.5, generator=random)
    return layer


def _side_by_side(
    device: torch.device, one: Callable[[], Result], two: Callable[[], Result]
) -> tuple[Result, Result]:
    """Do two things at once on a CPU, one after the other on a GPU.

    The networks are so small that threads inside one of them would mostly wait for each other.
    """
    threads = torch.get_num_threads()
    if device.type != "cpu" or threads == 1:
        return one(), two()
    try:
        with ThreadPoolExecutor(2, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            first, second = pool.submit(one), pool.submit(two)
            return first.result(), second.result()
    finally:
        torch.set_num_threads(threads)


def _squared(found: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """The sum of the squared errors of a batch."""
    return mse_loss(found, wanted, reduction="sum")


def _step(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def _numbers(tensor: torch.Tensor) -> npt.NDArray[np.float32]:
    return tensor.detach().cpu().numpy()


def _steps(language: Language) -> list[MapStep]:
    """From a language's own vectors to its latent space."""
    steps: list[MapStep] = list(language.prepared.steps)
    for layer in language.encoder:
        if isinstance(layer, nn.Linear):
            steps.append(Dense(_numbers(layer.weight.T), _numbers(layer.bias)))
        elif isinstance(layer, nn.PReLU):
            steps.append(PReLU(_numbers(layer.weight)))
        elif isinstance(layer, nn.Tanh):
            steps.append(Tanh())
    return steps


def _parameters(mapper: nn.Sequential) -> list[Any]:
    """The tensors of a mapper, in the order in which a map step wants them."""
    linear = [layer for layer in mapper if isinstance(layer, nn.Linear)]
    return [part for layer in linear for part in (_numbers(layer.weight.T), _numbers(layer.bias))]
