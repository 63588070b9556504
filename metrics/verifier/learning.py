"""What one step of training minimises, and how the learning rate goes through a stage."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from metrics.verifier.network import Reading
from metrics.verifier.sources import CONTRADICTED, NOT_FOUND, UNSUPPORTED
from metrics.verifier.tokenised import UNKNOWN, Lesson

TOKEN_SHARE = 0.5
"""Weight of the token head's loss against the class head's."""
WARM_UP = 0.04
LAST_RATE = 0.02
"""The rate at the end of a stage, as a share of its peak."""


def loss(reading: Reading, lesson: Lesson) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy of the classes and of the tokens.

    Of a claim that is only known to be unsupported, the summed probability of `not_found` and `contradicted` counts.
    """
    logs = functional.log_softmax(reading.classes.float(), dim=1)
    either = torch.logsumexp(logs[:, [NOT_FOUND, CONTRADICTED]], dim=1)
    plain = logs.gather(1, lesson.labels.clamp(max=CONTRADICTED)[:, None])[:, 0]
    classes = -torch.where(lesson.labels == UNSUPPORTED, either, plain).mean()
    known = lesson.tokens != UNKNOWN
    if not bool(known.any()):
        return classes, classes.new_zeros(())
    tokens = functional.binary_cross_entropy_with_logits(reading.tokens[known].float(), lesson.tokens[known].float())
    return classes, tokens


def rate(step: int, steps: int, peak: float) -> float:
    """Linear warm-up, then linear decay.

    >>> [round(rate(s, 100, 1.0), 2) for s in (0, 3, 52, 99)]
    [0.25, 1.0, 0.5, 0.03]
    """
    warm = max(1, round(steps * WARM_UP))
    if step < warm:
        return peak * (step + 1) / warm
    return peak * (1.0 - (1.0 - LAST_RATE) * (step - warm) / max(1, steps - warm))
