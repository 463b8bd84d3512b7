"""The contrastive loss of stage C2."""

from __future__ import annotations

import torch


def contrastive_loss(
    vectors: torch.Tensor,
    sources: torch.Tensor,
    targets: torch.Tensor,
    source_negatives: torch.Tensor,
    target_negatives: torch.Tensor,
    temperature: float,
) -> torch.Tensor:
    """InfoNCE over a pair's own negatives, summed over the pairs.

    With unit vectors x̂, ŷ the logits of a pair are [x̂·ŷ ; x̂·ŷ' for its target negatives ; x̂'·ŷ for its
    source negatives] / τ, and its loss is the cross-entropy with the true pair at index 0. The gradient
    goes through the norms. The sum is returned, not the mean, so that parts of a batch add up.

    Args:
        vectors: One row for each distinct word of the batch.
        sources: For each pair the row of its source word.
        targets: For each pair the row of its target word.
        source_negatives: For each pair the rows of its source negatives.
        target_negatives: For each pair the rows of its target negatives.
        temperature: τ.
    """
    unit = torch.nn.functional.normalize(vectors.float(), dim=1)
    from_sources = unit.index_select(0, sources) @ unit.T
    from_targets = unit.index_select(0, targets) @ unit.T
    logits = torch.cat(
        [
            from_sources.gather(1, targets[:, None]),
            from_sources.gather(1, target_negatives),
            from_targets.gather(1, source_negatives),
        ],
        dim=1,
    )
    truth = torch.zeros(len(logits), dtype=torch.long, device=logits.device)
    return torch.nn.functional.cross_entropy(logits / temperature, truth, reduction="sum")


def whole_batch_loss(
    vectors: torch.Tensor,
    sources: torch.Tensor,
    targets: torch.Tensor,
    sides: torch.Tensor,
    temperature: float,
) -> torch.Tensor:
    """InfoNCE in which every other word of the batch is a negative too, summed over the pairs.

    As `contrastive_loss`, but a pair's negatives are all target words of the batch for its source word and
    all source words for its target word. They cost nothing, since their vectors are there already; this is
    what the light presets use, which have few negatives of their own. The paper does not.

    Args:
        vectors: One row for each distinct word of the batch.
        sources: For each pair the row of its source word.
        targets: For each pair the row of its target word.
        sides: For each row 0 for a source word, 1 for a target word, −1 for a row that holds no word.
        temperature: τ.
    """
    unit = torch.nn.functional.normalize(vectors.float(), dim=1)
    never = torch.finfo(torch.float32).min
    forward = (unit.index_select(0, sources) @ unit.T / temperature).masked_fill(sides != 1, never)
    backward = (unit.index_select(0, targets) @ unit.T / temperature).masked_fill(sides != 0, never)
    backward = backward.scatter(1, sources[:, None], never)
    return torch.nn.functional.cross_entropy(torch.cat([forward, backward], dim=1), targets, reduction="sum")
