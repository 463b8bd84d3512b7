"""The closed-form gradient of C1's loss against autograd, in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bilex.aligners.contrast import Contrast

WORDS, DIM_X, DIM_Y, PAIRS, NEGATIVES = 400, 20, 16, 60, 15
NONE = np.zeros((0, 2), np.int64)


def problem(
    dtype: torch.dtype = torch.float64, words: int = WORDS
) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(words, DIM_X, generator=generator, dtype=torch.float64)
    y = x[:, :DIM_Y] + 0.5 * torch.randn(words, DIM_Y, generator=generator, dtype=torch.float64)
    rng = np.random.default_rng(0)
    pairs = np.repeat(rng.permutation(words)[:PAIRS, None], 2, axis=1)
    pairs[:10, 0] = pairs[10:20, 0]  # words with two translations
    pairs[59] = pairs[58]  # a pair that stands twice
    return x.to(dtype), y.to(dtype), pairs


def some_maps(dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [
        torch.randn(dim, DIM_Y, generator=generator, dtype=torch.float64).to(dtype) for dim in (DIM_X, DIM_Y)
    ]


def info_nce(
    x: torch.Tensor,
    y: torch.Tensor,
    pairs: np.ndarray,
    w_x: torch.Tensor,
    w_y: torch.Tensor,
    temperature: float,
    through_norms: bool,
    limit: int,
    rejected: np.ndarray = NONE,
) -> torch.Tensor:
    """The paper's loss written plainly: negatives by brute force, logits by gathering, cross-entropy."""

    def unit(rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        image = rows @ weights
        norm = image.norm(dim=1, keepdim=True)
        return image / (norm if through_norms else norm.detach())

    x_hat, y_hat = unit(x, w_x), unit(y, w_y)
    losses = []
    for source, target in pairs.tolist():
        logits = [(x_hat[source] @ y_hat[target])[None]]
        for scores, partner, known in (
            (x_hat[source] @ y_hat.T, target, rejected[rejected[:, 0] == source, 1]),
            (y_hat[target] @ x_hat.T, source, rejected[rejected[:, 1] == target, 0]),
        ):
            allowed = scores.detach().clone()
            allowed[limit:] = allowed[partner] = allowed[known] = -torch.inf
            logits += [scores[allowed.topk(NEGATIVES).indices], scores[known]]
        losses.append(-torch.log_softmax(torch.cat(logits) / temperature, 0)[0])
    return torch.stack(losses).mean()


def contrast(
    x: torch.Tensor,
    y: torch.Tensor,
    pairs: np.ndarray,
    temperature: float,
    through_norms: bool,
    limit: int = WORDS,
    rejected: np.ndarray = NONE,
) -> Contrast:
    options = {"through_norms": through_norms, "rejected": rejected}
    return Contrast(x, y, pairs, limit, NEGATIVES, temperature, **options)


@pytest.mark.parametrize(
    ("words", "limit"),
    [(WORDS, WORDS), (WORDS, 250), (6000, 5500)],
    ids=["all words", "frequent words", "thousands of words"],
)
@pytest.mark.parametrize("temperature", [1.0, 0.1])
@pytest.mark.parametrize("through_norms", [False, True], ids=["norms detached", "through norms"])
@pytest.mark.parametrize("rejections", [False, True], ids=["no rejected pairs", "rejected pairs"])
def test_closed_form_equals_autograd(
    rejections: bool, through_norms: bool, temperature: float, words: int, limit: int
) -> None:
    x, y, pairs = problem(words=words)
    rejected = NONE
    if rejections:  # some of them of words beyond the limit, and some of words without a pair
        partners = np.stack([pairs[:, 0], np.roll(pairs[:, 1], 7)], 1)[20:50]
        rejected = np.concatenate([partners, [[pairs[0, 0], words - 1], [words - 2, pairs[3, 1]], [1, 2]]])
    maps = some_maps()
    leaves = [m.clone().requires_grad_() for m in maps]
    loss = info_nce(x, y, pairs, *leaves, temperature, through_norms, limit, rejected)
    loss.backward()
    step = contrast(x, y, pairs, temperature, through_norms, limit, rejected).step(*maps)
    assert step.source.dtype == torch.float64
    assert float(step.loss) == pytest.approx(float(loss.detach()), rel=1e-12)
    for found, leaf in zip((step.source, step.target), leaves, strict=True):
        assert float((found - leaf.grad).norm()) < 1e-10 * float(leaf.grad.norm())
        torch.testing.assert_close(found, leaf.grad, rtol=1e-9, atol=1e-13)


def test_detaching_the_norms_makes_a_difference() -> None:
    """The two gradients differ, so the test above can fail."""
    x, y, pairs = problem()
    one, other = (contrast(x, y, pairs, 1.0, through).step(*some_maps()) for through in (False, True))
    assert float((one.source - other.source).norm()) > 0.01 * float(one.source.norm())
    torch.testing.assert_close(one.loss, other.loss)


@pytest.mark.parametrize("through_norms", [False, True], ids=["norms detached", "through norms"])
def test_float32_production_path_stays_near_float64(through_norms: bool) -> None:
    exact = contrast(*problem(), 1.0, through_norms).step(*some_maps())
    quick = contrast(*problem(torch.float32), 1.0, through_norms).step(*some_maps(torch.float32))
    assert quick.source.dtype == torch.float32
    assert float(quick.loss) == pytest.approx(float(exact.loss), rel=1e-6)
    for found, true in ((quick.source, exact.source), (quick.target, exact.target)):
        assert float((found.double() - true).norm()) < 1e-5 * float(true.norm())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_later_steps_do_not_depend_on_earlier_ones(dtype: torch.dtype) -> None:
    """Pools carry over from one update to the next; the gradient must be that of a fresh start."""
    x, y, pairs = problem(dtype)
    running = contrast(x, y, pairs, 1.0, False)
    maps = some_maps(dtype)
    for _ in range(5):
        step = running.step(*maps)
        fresh = contrast(x, y, pairs, 1.0, False).step(*maps)
        torch.testing.assert_close(step.source, fresh.source)
        torch.testing.assert_close(step.target, fresh.target)
        maps = [maps[0] - 0.5 * step.source, maps[1] - 0.5 * step.target]
