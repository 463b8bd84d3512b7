"""Small networks, and training them on batches of rows (LNMap).

All randomness comes from a generator that is given, so that two networks may be trained side by side and each
still gives the same numbers every time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Event
from typing import Any, TypeVar

import torch

from bilex.aligners.checkpoint import Checkpoint
from bilex.core.cuda_graphs import ReplayedPass
from bilex.core.progress import Progress

Result = TypeVar("Result")
Gradients = Callable[["torch.Tensor"], "torch.Tensor"]  # quoted: torch is not loaded for the list of methods
"""Puts the gradient of a batch's loss into the parameters, and gives the loss."""

_RANDOM = "random"


def by_autograd(
    loss: Callable[[torch.Tensor], torch.Tensor], parameters: list[torch.nn.Parameter]
) -> Gradients:
    """Gradients of any loss, on any device.

    Args:
        loss: The loss of a batch.
        parameters: What it depends on.
    """

    def gradients(batch: torch.Tensor) -> torch.Tensor:
        for parameter in parameters:
            parameter.grad = None
        found = loss(batch)
        found.backward()  # type: ignore[no-untyped-call]
        return found.detach()

    return gradients


def linear(before: int, after: int, random: torch.Generator) -> torch.nn.Linear:
    """A layer whose numbers start uniformly within ±1/√before."""
    layer = torch.nn.Linear(before, after, device=random.device)
    for part in (layer.weight, layer.bias):
        torch.nn.init.uniform_(part, -(before**-0.5), before**-0.5, generator=random)
    return layer


def half_autoencoder(widths: list[int], dropout: float, random: torch.Generator) -> torch.nn.Sequential:
    """Linear layers with PReLU and dropout between them."""
    from bilex.aligners.dropout import Dropout

    layers: list[torch.nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [
            linear(before, after, random),
            torch.nn.PReLU(device=random.device),
            Dropout(dropout, random),
        ]
    return torch.nn.Sequential(*layers[:-2])


@dataclass(frozen=True)
class Part:
    """A part of the work that may run beside others.

    Args:
        name: What it is called, in bars and reports.
        random: Its own random numbers.
        checkpoint: Where it keeps how far it is.
        stop: Set when it must end.
        progress: Receives how far it is.
    """

    name: str
    random: torch.Generator
    checkpoint: Checkpoint
    stop: Event
    progress: Progress


class StoppedError(Exception):
    """The training was asked to end."""


def side_by_side(
    device: torch.device, one: Callable[[Event], Result], two: Callable[[Event], Result]
) -> tuple[Result, Result]:
    """Do two things at once on a CPU, one after the other on a GPU.

    The networks are so small that threads inside one of them would mostly wait for each other. Each is given
    an event that is set as soon as the other fails or the user presses Ctrl-C.
    """
    stop = Event()
    threads = torch.get_num_threads()
    if device.type != "cpu" or threads == 1:
        return one(stop), two(stop)
    try:
        with ThreadPoolExecutor(2, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            try:
                both = pool.submit(one, stop), pool.submit(two, stop)
                for finished in as_completed(both):
                    finished.result()
                return both[0].result(), both[1].result()
            except BaseException:
                stop.set()
                raise
    finally:
        torch.set_num_threads(threads)


class Training:
    """Steps of an optimizer on batches; a GPU replays each step as a whole.

    `keep` and `resume` store and restore all that decides the further steps, random state included.

    Args:
        gradients: Puts the gradient of a batch, a tensor of row numbers, into the parameters.
        optimizer: What moves the parameters; on a GPU it must be able to be recorded.
        batch: Rows in a batch.
        part: The part of the work that this is; `gradients` draws from its random numbers.
    """

    def __init__(
        self,
        gradients: Gradients,
        optimizer: torch.optim.Optimizer,
        batch: int,
        part: Part,
    ) -> None:
        self._gradients, self._optimizer, self._batch, self._part = gradients, optimizer, batch, part
        self._step: Callable[[torch.Tensor], torch.Tensor] = self._one_step
        if part.random.device.type == "cuda":
            self._step = ReplayedPass(self._one_step, part.progress.say, [part.random])

    def _one_step(self, rows: torch.Tensor) -> torch.Tensor:
        loss = self._gradients(rows)
        self._optimizer.step()
        return loss

    def epoch(self, rows: torch.Tensor) -> float:
        """Step through the rows in their order; the sum of the batches' losses.

        Raises:
            StoppedError: The sign to stop was set.
        """
        total = torch.zeros((), device=rows.device)
        for batch in torch.split(rows, self._batch):
            if self._part.stop.is_set():
                raise StoppedError
            total += self._step(batch)
        return float(total)

    def keep(self, **state: Any) -> None:
        """Keep where the training is, and `state` beside it."""
        tensors: dict[str, torch.Tensor] = {_RANDOM: self._part.random.get_state()}
        for number, parameter in enumerate(self._parameters()):
            tensors[f"{number}"] = parameter
            for name, value in self._optimizer.state[parameter].items():
                tensors[f"{number}.{name}"] = value
        self._part.checkpoint.save(tensors, **state)

    def resume(self) -> dict[str, Any] | None:
        """Go back to where the training was when it was kept; what stood beside it, None if it was not."""
        kept = self._part.checkpoint.load()
        if kept is None:
            return None
        self._part.random.set_state(kept.tensors.pop(_RANDOM))
        parameters = self._parameters()
        for name, values in kept.tensors.items():
            number, _, of_optimizer = name.partition(".")
            parameter = parameters[int(number)]
            if of_optimizer:
                self._optimizer.state[parameter][of_optimizer] = values.to(parameter.device)
            else:
                parameter.data.copy_(values)
        return kept.state

    def _parameters(self) -> list[torch.nn.Parameter]:
        return [parameter for group in self._optimizer.param_groups for parameter in group["params"]]
