"""LNMap: two autoencoders, and non-linear mappers between their latent spaces.

Mohiuddin, Bari and Joty, "LNMap: Departures from Isomorphic Assumption in Bilingual Lexicon Induction
Through Non-Linear Mapping in Latent Space" (EMNLP 2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from bilex.aligners.base import Aligner, Pairs
from bilex.aligners.checkpoint import Checkpoint
from bilex.aligners.limits import SMALLEST, Limits
from bilex.aligners.lnmap_objectives import Autoencoder, RoundTrip
from bilex.aligners.maps import Dense, Map, MappedBesideOwn, MapStep, OwnBesideMapped, PReLU, Tanh
from bilex.aligners.preparation import Prepared, unit_center_unit
from bilex.aligners.remembering import Known, remembered
from bilex.aligners.report import AlignerReport
from bilex.aligners.small_networks import (
    Part,
    Training,
    half_autoencoder,
    linear,
    side_by_side,
)
from bilex.core.cuda_graphs import own_stream
from bilex.core.device import resolve_device
from bilex.core.errors import BilexError
from bilex.core.progress import Progress
from bilex.search import csls_top_k, neighbourhoods
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from typing import Self

# In a trial: the share of the mappers' first steps, and the epochs of each round at most. P@1 on held-out
# words is then 0.4 lower on average, scores are 4 % lower (research/performance.md).
_TRIAL_MAPPER_SHARE, _TRIAL_ROUND_EPOCHS = 0.5, 3
# What an autoencoder depends on, besides the vectors and which of the two languages it is.
_OF_AUTOENCODERS = (
    *("hidden", "latent", "dropout", "batch", "seed", "device"),
    *("autoencoder_epochs", "autoencoder_samples", "autoencoder_rate"),
)
_PARTS = ("source", "target", "forward", "backward")


class Language(NamedTuple):
    """What is known of a language: its prepared vectors, its autoencoder, its latent vectors, their error."""

    prepared: Prepared
    rows: torch.Tensor
    autoencoder: Autoencoder
    latent: torch.Tensor
    error: float


class Mapper(NamedTuple):
    """A mapper between two latent spaces, and the number of pairs that it learned from last."""

    network: torch.nn.Sequential
    pairs: int


@dataclass(frozen=True, kw_only=True)
class LNMapReport(AlignerReport):
    """What it reports.

    Attributes:
        source_reconstruction_error: The mean squared error of the source autoencoder in its last epoch.
        target_reconstruction_error: Likewise.
        forward_pairs: Pairs that the mapper from source to target learned from in its last round.
        backward_pairs: Likewise from target to source.
    """

    source_reconstruction_error: float = math.nan
    target_reconstruction_error: float = math.nan
    forward_pairs: int = 0
    backward_pairs: int = 0


@dataclass(kw_only=True, repr=False)
class LNMap(Aligner):
    """Learn a latent space for each language, and a network that leads from one to the other.

    For each direction a mapper G is trained on the seed pairs to hit the partner, together with a
    mapper F that must lead back to where it came from, in the latent space and, decoded, in the
    language's own. In further rounds, pairs that are each other's best partner join the seeds.

    The two directions have a mapper each. The common space serves both: a source word is
    [G(z_x); z_x], a target word [z_y; F(z_y)], each half of unit length, so that their cosine is the
    mean of the cosines in the two latent spaces.

    The authors name SGD at 1e-4 for the mappers, for 100 epochs. It moves them if squared errors are
    summed over the batch and the dimensions, and does not if they are averaged, so ours are summed;
    `mapper_rate` and `mapper_batch` belong together therefore. A hundred epochs of a thousand pairs are too
    few steps to begin self-training with; ours has momentum, and a number of steps that does not depend on
    how many seeds there are. The mappers go on from one round to the next.

    Args:
        hidden: Units of each hidden layer.
        latent: Dimension of the latent spaces.
        dropout: Of the autoencoders' hidden layers.
        mapper_dropout: Of the mappers' hidden layer.
        autoencoder_epochs: Epochs for the autoencoders.
        autoencoder_samples: Words drawn in each of them.
        autoencoder_rate: Adam's learning rate for the autoencoders.
        mapper_steps: Steps of the mappers on the seed pairs, made full to whole epochs.
        round_epochs: Epochs over the pairs of each further round.
        mapper_rate: The learning rate of SGD for the mappers.
        mapper_momentum: Its momentum.
        batch: Words in a batch of the autoencoders.
        mapper_batch: Pairs in a batch of the mappers.
        rounds: Self-training rounds.
        growth: How many more pairs each round may add to the seeds.
        candidates: Among how many frequent words of each language partners are looked for.
        queries: How many frequent words of each language ask.
        neighbours: k of CSLS.

    Examples:
        >>> LNMap(rounds=3).fit(source, target, lexicon)  # doctest: +SKIP
    """

    name = "lnmap"
    summary = "non-linear maps between latent spaces, with self-training; minutes, best on a GPU"

    limits: ClassVar[Limits] = {
        **dict.fromkeys(("hidden", "latent", "batch", "mapper_batch"), (1, None)),
        **dict.fromkeys(("autoencoder_epochs", "autoencoder_samples", "mapper_steps"), (1, None)),
        **dict.fromkeys(("candidates", "queries", "neighbours"), (1, None)),
        **dict.fromkeys(("dropout", "mapper_dropout", "mapper_momentum"), (0, 0.99)),
        **dict.fromkeys(("autoencoder_rate", "mapper_rate"), (SMALLEST, None)),
    }

    hidden: int = 400
    latent: int = 350
    dropout: float = 0.25
    mapper_dropout: float = 0.1
    autoencoder_epochs: int = 25
    autoencoder_samples: int = 100_000
    autoencoder_rate: float = 1e-4
    mapper_steps: int = 2000
    round_epochs: int = 5
    mapper_rate: float = 1e-4
    mapper_momentum: float = 0.9
    batch: int = 128
    mapper_batch: int = 128
    rounds: int = 10
    growth: int = 2000
    candidates: int = 30_000
    queries: int = 15_000
    neighbours: int = 10
    report_: LNMapReport = field(init=False, compare=False)

    def for_trial(self, pairs: int, words: int) -> Self:
        """Fewer steps of the mappers."""
        return self.clone().set_params(
            mapper_steps=max(1, round(_TRIAL_MAPPER_SHARE * self.mapper_steps)),
            round_epochs=min(self.round_epochs, _TRIAL_ROUND_EPOCHS),
        )

    def _fit(
        self,
        source: WordVectors,
        target: WordVectors,
        pairs: Pairs,
        progress: Progress,
        checkpoint: Path | None,
    ) -> None:
        device = resolve_device(self.device)
        state = Checkpoint.of_fit(checkpoint, self.settings(), source, target, pairs, progress)
        of_source, of_target = remembered(source), remembered(target)

        def part(name: str, stop: Event) -> Part:
            random = torch.Generator(device).manual_seed(4 * self.seed + _PARTS.index(name))
            return Part(name, random, state.part(name), stop, progress)

        with own_stream(device):
            x, y = side_by_side(
                device,
                lambda stop: self._language(source, part("source", stop), of_source),
                lambda stop: self._language(target, part("target", stop), of_target),
            )
            forward, backward = side_by_side(
                device,
                lambda stop: self._mapper(x, y, pairs, part("forward", stop)),
                lambda stop: self._mapper(y, x, pairs[:, ::-1], part("backward", stop)),
            )
        self.source_map_ = Map([*_steps(x), MappedBesideOwn(*_parameters(forward.network))])
        self.target_map_ = Map([*_steps(y), OwnBesideMapped(*_parameters(backward.network))])
        self.report_ = replace(
            self.report_,
            source_reconstruction_error=x.error,
            target_reconstruction_error=y.error,
            forward_pairs=forward.pairs,
            backward_pairs=backward.pairs,
        )

    def _samples(self) -> int:
        """Words drawn in an epoch, made full to whole batches."""
        return -(-self.autoencoder_samples // self.batch) * self.batch

    def _language(self, vectors: WordVectors, part: Part, known: Known) -> Language:
        """Prepare a language's vectors and train its autoencoder, if that is not `known` already."""
        prepared = unit_center_unit(vectors.vectors)
        random = part.random
        rows = torch.from_numpy(prepared.rows).to(random.device)
        widths = [vectors.dim, self.hidden, self.hidden, self.latent]
        encoder = half_autoencoder(widths, self.dropout, random).append(torch.nn.Tanh())
        autoencoder = Autoencoder(encoder, half_autoencoder(widths[::-1], self.dropout, random))
        optimizer = _adam(autoencoder.parameters(), self.autoencoder_rate)
        training = Training(autoencoder.gradients(rows, self.batch), optimizer, self.batch, part)
        kept = training.resume() or {"done": 0, "error": math.nan}
        same = part.name, *(getattr(self, name) for name in _OF_AUTOENCODERS)
        if same in known and kept["done"] == 0:
            trained, error = known[same]
            autoencoder.copy_(trained)
            kept = {"done": self.autoencoder_epochs, "error": error}
            training.keep(**kept)
        done, error = kept["done"], kept["error"]
        samples = (self._samples(),)
        with part.progress.task(f"{part.name} autoencoder", total=self.autoencoder_epochs) as task:
            task.advance(done)
            while done < self.autoencoder_epochs:
                chosen = torch.randint(len(rows), samples, generator=random, device=rows.device)
                error = training.epoch(chosen) * self.batch / len(chosen) * vectors.dim
                done += 1
                training.keep(done=done, error=error)
                task.advance(error=error)
        autoencoder.freeze()
        known[same] = autoencoder, error
        latent = torch.cat([encoder(part) for part in torch.split(rows, 16384)])
        return Language(prepared, rows, autoencoder, latent, error)

    def _mapper(self, x: Language, y: Language, seeds: Pairs, part: Part) -> Mapper:
        """The mapper from x's latent space to y's, after all rounds of self-training."""
        random = part.random
        there = self._new_mapper(random)
        trip = RoundTrip(there, self._new_mapper(random), x.autoencoder.decoder)
        optimizer = torch.optim.SGD(
            trip.parameters(), self.mapper_rate, momentum=self.mapper_momentum, fused=True
        )
        gradients = trip.gradients(x.latent, y.latent, x.rows, self.mapper_batch)
        training = Training(gradients, optimizer, self.mapper_batch, part)
        kept = training.resume() or {"done": 0, "pairs": 0}
        done, used = kept["done"], kept["pairs"]
        epochs = [math.ceil(self.mapper_steps * self.mapper_batch / len(seeds))]
        epochs += self.rounds * [self.round_epochs]
        with part.progress.task(f"{part.name} mapper", total=sum(epochs)) as task:
            task.advance(sum(epochs[:done]))
            while done < len(epochs):
                found = self._mutual_pairs(there, x, y)[: done * self.growth] if done else seeds[:0]
                there.train()
                rows = torch.from_numpy(np.concatenate([seeds, found])).to(x.rows.device)
                for _ in range(epochs[done]):
                    order = torch.randperm(len(rows), generator=random, device=rows.device)
                    mean = training.epoch(rows[order]) / len(rows)
                    if not math.isfinite(mean):
                        raise BilexError(
                            f"lnmap's mapper diverged at mapper_rate {self.mapper_rate}; use a smaller one."
                        )
                    task.advance(loss=mean, pairs=len(rows))
                done, used = done + 1, len(rows)
                training.keep(done=done, pairs=used)
        return Mapper(there.eval(), used)

    def _new_mapper(self, random: torch.Generator) -> torch.nn.Sequential:
        from bilex.aligners.dropout import Dropout

        return torch.nn.Sequential(
            linear(self.latent, self.hidden, random),
            torch.nn.Tanh(),
            Dropout(self.mapper_dropout, random),
            linear(self.hidden, self.latent, random),
        )

    def _mutual_pairs(self, there: torch.nn.Sequential, x: Language, y: Language) -> Pairs:
        """Frequent words that are each other's best partner by CSLS, most similar first."""
        there.eval()
        with torch.no_grad():
            mapped = torch.nn.functional.normalize(there(x.latent[: self.candidates]))
        other = torch.nn.functional.normalize(y.latent[: self.candidates])
        return mutual_best(mapped, other, self.queries, self.neighbours, self.device)


def mutual_best(source: torch.Tensor, target: torch.Tensor, queries: int, k: int, device: str) -> Pairs:
    """Pairs of which each is the other's best by CSLS, sorted by falling cosine.

    Args:
        source: Source rows of unit length.
        target: Target rows likewise.
        queries: How many of the first rows of each side ask.
        k: Neighbours in CSLS.
        device: "auto", "cpu" or "cuda".
    """
    r_x, r_y = neighbourhoods(source, target, k, device=device)
    x, back = source[:queries], np.full(len(target), -1)
    _, forward = csls_top_k(x, target, 1, query_mean=r_x[: len(x)], key_mean=r_y, device=device)
    best = forward[:, 0]
    wanted = np.unique(best[best < queries])
    y = target[torch.from_numpy(wanted).to(target.device)]
    _, backward = csls_top_k(y, source, 1, query_mean=r_y[wanted], key_mean=r_x, device=device)
    back[wanted] = backward[:, 0]
    mutual = np.flatnonzero(back[best] == np.arange(len(best)))
    cosines = (source[mutual] * target[best[mutual]]).sum(dim=1).cpu().numpy()
    mutual = mutual[np.argsort(-cosines, kind="stable")]
    return np.stack([mutual, best[mutual]], axis=1)


def _adam(parameters: list[torch.nn.Parameter], rate: float) -> torch.optim.Adam:
    """Adam in a form that a GPU can record."""
    return torch.optim.Adam(parameters, rate, fused=True, capturable=parameters[0].is_cuda)


def _numbers(tensor: torch.Tensor) -> npt.NDArray[np.float32]:
    return tensor.detach().cpu().numpy()


def _steps(language: Language) -> list[MapStep]:
    """From a language's own vectors to its latent space."""
    steps: list[MapStep] = list(language.prepared.steps)
    for layer in language.autoencoder.encoder:
        if isinstance(layer, torch.nn.Linear):
            steps.append(Dense(_numbers(layer.weight.T), _numbers(layer.bias)))
        elif isinstance(layer, torch.nn.PReLU):
            steps.append(PReLU(_numbers(layer.weight)))
        elif isinstance(layer, torch.nn.Tanh):
            steps.append(Tanh())
    return steps


def _parameters(mapper: torch.nn.Sequential) -> list[Any]:
    """The tensors of a mapper, in the order in which a map step wants them."""
    linear = [layer for layer in mapper if isinstance(layer, torch.nn.Linear)]
    return [part for layer in linear for part in (_numbers(layer.weight.T), _numbers(layer.bias))]
