"""LNMap: two autoencoders, and non-linear mappers between their latent spaces.

Mohiuddin, Bari and Joty, "LNMap: Departures from Isomorphic Assumption in Bilingual Lexicon Induction
Through Non-Linear Mapping in Latent Space" (EMNLP 2020).
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from bilex.aligners.base import SMALLEST, Aligner, AlignerReport, Folder, Limits, Pairs
from bilex.aligners.checkpoint import Checkpoint
from bilex.aligners.maps import Dense, Map, MappedBesideOwn, MapStep, OwnBesideEncoders, PReLU
from bilex.aligners.preparation import unit_center_unit
from bilex.core.cuda_graphs import ReplayedStep
from bilex.core.device import resolve_device
from bilex.core.errors import BilexError
from bilex.core.progress import Progress
from bilex.search import csls_top_k, neighbourhoods
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from typing import Self

_TRIAL_EPOCHS = 20
_STAGES = ("source autoencoder", "target autoencoder", "forward mapper", "backward mapper")


@dataclass(frozen=True, kw_only=True)
class LNMapReport(AlignerReport):
    """The report of LNMap.

    Attributes:
        source_reconstruction_error: The squared error of a source word in the autoencoder's last epoch.
        target_reconstruction_error: The same for the target language.
        forward_pairs: Pairs that the mapper from source to target learned from in its last round.
        backward_pairs: The same from target to source.
    """

    source_reconstruction_error: float = math.nan
    target_reconstruction_error: float = math.nan
    forward_pairs: int = 0
    backward_pairs: int = 0


@dataclass(kw_only=True, repr=False)
class LNMap(Aligner):
    """Learn a latent space for each language, and a network that leads from one to the other.

    For each direction a mapper G is trained to hit the partner in the other latent space, together with a
    mapper F that leads back. With z = encoder(x), the loss of pairs (x, y) is

        ‖G(z_x) − z_y‖² + ‖F(G(z_x)) − z_x‖² + ‖decoder(F(G(z_x))) − x‖².

    The direction's own encoder and decoder learn with the mappers; the other language's encoder is fixed. In
    further rounds, pairs that are each other's best partner join the seeds. The direction from target to
    source begins where the first one ended: F becomes G and G becomes F.

    The common space serves both directions: a source word is [G(z_x); z_x], a target word [z_y; G'(z_y')],
    each half of unit length, so that their cosine is the mean of the cosines in the two latent spaces.

    As in the authors' program, squared errors are averaged and mappers start as the identity. SGD at 1e-4
    hardly moves them from there: it is the encoder that learns to hit the other language's latent space.

    Args:
        hidden: Units of each hidden layer.
        latent: Dimension of the latent spaces.
        dropout: Of the autoencoders' hidden layers.
        mapper_dropout: Of the mappers' hidden layer.
        autoencoder_epochs: Epochs for the autoencoders alone.
        autoencoder_samples: Words drawn in each of them.
        autoencoder_rate: Adam's learning rate for the autoencoders, alone and beside the mappers.
        mapper_epochs: Epochs over the pairs of each round.
        mapper_rate: The learning rate of SGD for the mappers.
        batch: Words or pairs in a batch.
        rounds: Rounds, of which the first learns from the seeds alone.
        growth: How many more pairs each round may add to the seeds.
        candidates: The number of frequent words per language among which partners are searched.
        queries: The number of frequent words per language for which partners are searched.
        neighbours: k of CSLS.
        induction_dropout: Whether dropout stays on while pairs are induced.

    Examples:
        >>> LNMap(rounds=3).fit(source, target, lexicon)  # doctest: +SKIP
    """

    name = "lnmap"
    summary = "non-linear maps between latent spaces, with self-training; many minutes, best on a GPU"
    limits: ClassVar[Limits] = {
        **dict.fromkeys(("hidden", "latent", "batch", "mapper_epochs"), (1, None)),
        **dict.fromkeys(("autoencoder_epochs", "autoencoder_samples"), (1, None)),
        **dict.fromkeys(("candidates", "queries", "neighbours"), (1, None)),
        **dict.fromkeys(("dropout", "mapper_dropout"), (0, 0.99)),
        **dict.fromkeys(("autoencoder_rate", "mapper_rate"), (SMALLEST, None)),
    }

    hidden: int = 400
    latent: int = 350
    dropout: float = 0.25
    mapper_dropout: float = 0.1
    autoencoder_epochs: int = 25
    autoencoder_samples: int = 100_000
    autoencoder_rate: float = 1e-4
    mapper_epochs: int = 100
    mapper_rate: float = 1e-4
    batch: int = 128
    rounds: int = 10
    growth: int = 2000
    candidates: int = 30_000
    queries: int = 15_000
    neighbours: int = 10
    induction_dropout: bool = False
    report_: LNMapReport = field(init=False, compare=False)

    def for_trial(self, pairs: int, words: int) -> Self:
        """Fewer epochs per round."""
        return self.clone().set_params(mapper_epochs=min(self.mapper_epochs, _TRIAL_EPOCHS))

    def _fit(
        self, source: WordVectors, target: WordVectors, pairs: Pairs, progress: Progress, checkpoint: Folder
    ) -> None:
        device = resolve_device(self.device)
        state = Checkpoint.of_fit(checkpoint, self.settings(), source, target, pairs, progress)
        x, y = unit_center_unit(source.vectors), unit_center_unit(target.vectors)
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            a, x_error = self._autoencoder(torch.from_numpy(x.rows).to(device), 0, state, progress)
            b, y_error = self._autoencoder(torch.from_numpy(y.rows).to(device), 1, state, progress)
            y_goal = copy.deepcopy(b.encoder)  # what is mapped to; the other direction trains b's
            self._seed(len(_STAGES), 0)
            there, back = (self._mapper().to(device) for _ in range(2))
            forward_pairs = self._train(there, back, a, y_goal, b.rows, pairs, 2, state, progress)
            forward = copy.deepcopy(there)
            backward_pairs = self._train(
                back, there, b, a.encoder, a.rows, pairs[:, ::-1], 3, state, progress
            )
        own, other = _tensors(y_goal), _tensors(b.encoder)
        self.source_map_ = Map([*x.steps, *_steps(a.encoder), MappedBesideOwn(*_tensors(forward))])
        self.target_map_ = Map([*y.steps, OwnBesideEncoders(*own, *other, *_tensors(back))])
        self.report_ = replace(
            self.report_,
            source_reconstruction_error=x_error,
            target_reconstruction_error=y_error,
            forward_pairs=forward_pairs,
            backward_pairs=backward_pairs,
        )

    def _half(self, widths: list[int]) -> nn.Sequential:
        """Three linear layers; the two hidden ones have dropout and share a PReLU."""
        slope, drop = nn.PReLU(), nn.Dropout(self.dropout)
        first, second, last = (nn.Linear(before, after) for before, after in itertools.pairwise(widths))
        return nn.Sequential(first, slope, drop, second, slope, drop, last)

    def _mapper(self) -> nn.Sequential:
        """A hidden layer with dropout and tanh, and the identity as matrices to begin with."""
        first, last = nn.Linear(self.latent, self.hidden), nn.Linear(self.hidden, self.latent)
        for layer in (first, last):
            nn.init.eye_(layer.weight)
        return nn.Sequential(first, nn.Dropout(self.mapper_dropout), nn.Tanh(), last)

    def _seed(self, stage: int, number: int) -> None:
        """Random numbers that depend on the place in the work alone, so that a resumed fit draws the same."""
        torch.manual_seed(int(np.random.SeedSequence([self.seed, stage, number]).generate_state(1)[0]))

    def _epoch(self, step: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor) -> float:
        """Update on rows or pairs in batches; the mean loss of one."""
        total = torch.zeros((), device=rows.device)
        for batch in torch.split(rows, self.batch):
            total += step(batch) * len(batch)
        return float(total) / len(rows)

    def _autoencoder(
        self, rows: torch.Tensor, stage: int, state: Checkpoint, progress: Progress
    ) -> tuple[_Language, float]:
        """A language with its trained autoencoder, and the error of a word in the last epoch."""
        self._seed(stage, 0)
        widths = [rows.shape[1], self.hidden, self.hidden, self.latent]
        encoder = self._half(widths).to(rows.device)
        decoder = self._half(widths[::-1]).append(nn.Tanh()).to(rows.device)
        parameters = [*encoder.parameters(), *decoder.parameters()]
        adam = torch.optim.Adam(parameters, self.autoencoder_rate, capturable=rows.device.type == "cuda")
        kept = _Kept(state.part(_STAGES[stage].split()[0]), [encoder, decoder], adam)
        done, error = kept.resume(error=math.nan)
        step = _step(
            lambda own: functional.mse_loss(decoder(encoder(rows[own])), rows[own]), [adam], progress
        )
        with progress.task(_STAGES[stage], total=self.autoencoder_epochs) as task:
            task.advance(done)
            for epoch in range(done, self.autoencoder_epochs):
                self._seed(stage, epoch + 1)
                chosen = torch.randint(len(rows), (self.autoencoder_samples,), device=rows.device)
                error = self._epoch(step, chosen) * rows.shape[1]
                kept.save(epoch + 1, error=error)
                task.advance(error=error)
        return _Language(rows, encoder, decoder, adam), error

    def _train(
        self,
        there: nn.Sequential,
        back: nn.Sequential,
        own: _Language,
        other: nn.Sequential,
        y: torch.Tensor,
        seeds: Pairs,
        stage: int,
        state: Checkpoint,
        progress: Progress,
    ) -> int:
        """Train a direction's mappers and autoencoder in all rounds; the number of pairs of the last one."""
        x = own.rows
        sgd = torch.optim.SGD([*there.parameters(), *back.parameters()], self.mapper_rate)
        networks = nn.ModuleList([there, back, own.encoder, own.decoder])
        kept = _Kept(state.part(_STAGES[stage].split()[0]), networks, own.adam)
        done, used = kept.resume(pairs=0)
        both = nn.ModuleList([networks, other])

        def loss(pairs: torch.Tensor) -> torch.Tensor:
            words, goal = x[pairs[:, 0]], _encoded(other, y[pairs[:, 1]])
            z = own.encoder(words)
            arrived = there(z)
            returned = back(arrived)
            ends = (arrived, goal), (returned, z), (own.decoder(returned), words)
            return torch.stack([functional.mse_loss(a, b) for a, b in ends]).sum()

        step = _step(loss, [own.adam, sgd], progress)
        with progress.task(_STAGES[stage], total=self.rounds * self.mapper_epochs) as task:
            task.advance(done * self.mapper_epochs)
            for number in range(done, self.rounds):
                self._seed(stage, number)
                found = seeds[:0]
                if number:
                    both.train(self.induction_dropout)
                    mapped = _encoded(nn.Sequential(own.encoder, there), x[: self.candidates])
                    goal = _encoded(other, y[: self.candidates])
                    mapped, goal = map(functional.normalize, (mapped, goal))
                    found = mutual_best(mapped, goal, self.queries, self.neighbours, self.device)
                pairs = torch.from_numpy(np.concatenate([seeds, found[: number * self.growth]])).to(x.device)
                both.train()
                for _ in range(self.mapper_epochs):
                    mean = self._epoch(step, pairs[torch.randperm(len(pairs), device=x.device)])
                    if not math.isfinite(mean):
                        raise BilexError(
                            f"lnmap's mapper diverged at mapper_rate {self.mapper_rate}; use a smaller one."
                        )
                    task.advance(loss=mean, pairs=len(pairs))
                used = len(pairs)
                kept.save(number + 1, pairs=used)
        both.eval()
        return int(used)


class _Language(NamedTuple):
    """A language's rows, its autoencoder, and Adam, which goes on while the mappers learn."""

    rows: torch.Tensor
    encoder: nn.Sequential
    decoder: nn.Sequential
    adam: torch.optim.Adam


def mutual_best(source: torch.Tensor, target: torch.Tensor, queries: int, k: int, device: str) -> Pairs:
    """Pairs of unit rows of which each is the other's best by CSLS, sorted by falling cosine.

    Only the first `queries` rows of each side are paired; all rows are candidates and neighbours.
    """
    r_x, r_y = neighbourhoods(source, target, k, device=device)
    x, y = source[:queries], target[:queries]
    _, forward = csls_top_k(x, target, 1, query_mean=r_x[: len(x)], key_mean=r_y, device=device)
    _, backward = csls_top_k(y, source, 1, query_mean=r_y[: len(y)], key_mean=r_x, device=device)
    best = forward[:, 0]
    rows = np.flatnonzero(best < len(y))
    mutual = rows[backward[best[rows], 0] == rows]
    cosines = (source[mutual] * target[best[mutual]]).sum(dim=1).cpu().numpy()
    mutual = mutual[np.argsort(-cosines, kind="stable")]
    return np.stack([mutual, best[mutual]], axis=1)


def _step(
    loss: Callable[[torch.Tensor], torch.Tensor], optimizers: list[torch.optim.Optimizer], progress: Progress
) -> Callable[[torch.Tensor], torch.Tensor]:
    """An update as a function of the rows of a batch; a GPU replays it as a whole. Returns the loss."""

    def step(batch: torch.Tensor) -> torch.Tensor:
        value = loss(batch)
        for optimizer in optimizers:
            optimizer.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        for optimizer in optimizers:
            optimizer.step()
        return value.detach()

    on_gpu = optimizers[0].param_groups[0]["params"][0].is_cuda
    return ReplayedStep(step, progress.log) if on_gpu else step


@torch.no_grad()
def _encoded(network: nn.Module, rows: torch.Tensor) -> torch.Tensor:
    return torch.cat([network(block) for block in torch.split(rows, 16384)])


class _Kept:
    """Networks and the state of Adam, which a checkpoint keeps between epochs or rounds."""

    def __init__(self, checkpoint: Checkpoint, networks: Iterable[nn.Module], adam: torch.optim.Adam) -> None:
        self._checkpoint, self._adam = checkpoint, adam
        self._weights = dict(nn.ModuleList(networks).named_parameters())
        self._trained = dict(enumerate(adam.param_groups[0]["params"]))

    def save(self, done: int, **value: Any) -> None:
        """Keep all of it, how much is done, and one more number."""
        moments = {
            f"adam {number} {name}": tensor
            for number, parameter in self._trained.items()
            for name, tensor in self._adam.state[parameter].items()
        }
        self._checkpoint.save(self._weights | moments, done=done, **value)

    def resume(self, **value: Any) -> tuple[int, Any]:
        """How much is done, and the other number; `value` if nothing was kept."""
        ((name, first),) = value.items()
        kept = self._checkpoint.load()
        if kept is None:
            return 0, first
        for place, parameter in self._weights.items():
            parameter.data.copy_(kept.tensors[place])
        for number, parameter in self._trained.items():
            moments = {
                part: kept.tensors[f"adam {number} {part}"] for part in ("step", "exp_avg", "exp_avg_sq")
            }
            where = parameter.device  # Adam counts steps on a GPU if it is replayed there
            self._adam.state[parameter] = {part: tensor.to(where) for part, tensor in moments.items()}
        return kept.state["done"], kept.state[name]


def _tensors(network: nn.Sequential) -> list[Any]:
    """The tensors of a network in their order, matrices as they are applied to rows."""
    found: list[Any] = []
    for layer in network:
        if isinstance(layer, nn.Linear):
            found += [layer.weight.T, layer.bias]
        elif isinstance(layer, nn.PReLU):
            found.append(layer.weight)
    return [tensor.detach().cpu().numpy() for tensor in found]


def _steps(encoder: nn.Sequential) -> list[MapStep]:
    """An encoder as steps of a map."""
    t = _tensors(encoder)
    return [Dense(*t[:2]), PReLU(t[2]), Dense(*t[3:5]), PReLU(t[5]), Dense(*t[6:])]
