"""What LNMap's networks are trained for, and the gradients: by autograd on a GPU, written out on a CPU."""

from __future__ import annotations

from typing import NamedTuple

import torch

from bilex.aligners.small_networks import Gradients, by_autograd


class Autoencoder(NamedTuple):
    """The two halves of an autoencoder."""

    encoder: torch.nn.Sequential
    decoder: torch.nn.Sequential

    def parameters(self) -> list[torch.nn.Parameter]:
        """Those of both halves."""
        return [*self.encoder.parameters(), *self.decoder.parameters()]

    def copy_(self, other: Autoencoder) -> None:
        """Take the numbers of another one of the same widths."""
        for mine, its in zip(self.parameters(), other.parameters(), strict=True):
            mine.data.copy_(its)

    def freeze(self) -> None:
        """End its training."""
        for half in self:
            half.eval().requires_grad_(False)

    def gradients(self, rows: torch.Tensor, batch: int) -> Gradients:
        """Of the mean squared error of reconstruction, for batches of row numbers.

        Args:
            rows: All rows that it learns from.
            batch: The most rows of a batch.
        """

        def reconstruction_error(numbers: torch.Tensor) -> torch.Tensor:
            known = rows[numbers]
            return torch.nn.functional.mse_loss(self.decoder(self.encoder(known)), known)

        if rows.is_cuda:
            return by_autograd(reconstruction_error, self.parameters())
        from bilex.aligners.written_out.chain import Chain

        whole = Chain(torch.nn.Sequential(*self.encoder, *self.decoder), batch)

        @torch.no_grad()
        def written_out(numbers: torch.Tensor) -> torch.Tensor:
            known = rows[numbers]
            difference = whole.forward(known) - known
            error = _squares(difference) / difference.numel()
            whole.backward(difference.mul_(2 / difference.numel()), to_batch=False)
            return error

        return written_out


class RoundTrip(NamedTuple):
    """Two mappers between latent spaces, there and back, and what they are measured by.

    Attributes:
        there: The mapper that leads to the other language.
        back: The mapper that leads back.
        decoder: From the latent space to the language's own vectors; it learns nothing here.
    """

    there: torch.nn.Sequential
    back: torch.nn.Sequential
    decoder: torch.nn.Sequential

    def parameters(self) -> list[torch.nn.Parameter]:
        """Those of both mappers."""
        return [*self.there.parameters(), *self.back.parameters()]

    def error(self, start: torch.Tensor, goal: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        """The sum of the squared errors of where a batch arrives, returns to, and what that decodes to.

        Args:
            start: Latent vectors of the words.
            goal: Latent vectors of their partners.
            own: The words' own vectors.
        """
        arrived = self.there(start)
        returned = self.back(arrived)
        ends = ((arrived, goal), (returned, start), (self.decoder(returned), own))
        return torch.stack(
            [torch.nn.functional.mse_loss(found, wanted, reduction="sum") for found, wanted in ends]
        ).sum()

    def gradients(
        self, starts: torch.Tensor, goals: torch.Tensor, owns: torch.Tensor, batch: int
    ) -> Gradients:
        """Of `error`, for batches of pairs of row numbers.

        Args:
            starts: Latent vectors of all words.
            goals: Latent vectors of the other language's words.
            owns: The words' own vectors.
            batch: The most pairs of a batch.
        """

        def error(pairs: torch.Tensor) -> torch.Tensor:
            queries, keys = pairs.T
            return self.error(starts[queries], goals[keys], owns[queries])

        if owns.is_cuda:
            return by_autograd(error, self.parameters())
        from bilex.aligners.written_out.chain import Chain

        there, back, decoder = (Chain(network, batch) for network in self)

        @torch.no_grad()
        def written_out(pairs: torch.Tensor) -> torch.Tensor:
            queries, keys = pairs.T
            start = starts[queries]
            arrived = there.forward(start)
            returned = back.forward(arrived)
            decoded = decoder.forward(returned)
            differences = arrived - goals[keys], returned - start, decoded - owns[queries]
            total = torch.stack([_squares(difference) for difference in differences]).sum()
            at_goal, at_start, at_own = (difference.mul_(2) for difference in differences)
            at_start += decoder.backward(at_own, to_batch=True)
            at_goal += back.backward(at_start, to_batch=True)
            there.backward(at_goal, to_batch=False)
            return total

        return written_out


def _squares(rows: torch.Tensor) -> torch.Tensor:
    flat = rows.view(-1)
    return flat.dot(flat)
