"""What the small model that joins words and network sees of one statement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from metrics.faithfulness import log_odds
from metrics.verifier.network import CLASSES
from metrics.verifier.reader import Held

VERSION = 4
"""Raise it when a feature changes its meaning, or what is read for it: the joining model must then be fitted anew."""
ABOUT = 0.3
"""Share of a statement's words that a window must hold for its contradiction to count: it must speak of the same."""
SUPPORTED, NOT_FOUND, CONTRADICTED = range(len(CLASSES))
_LIMIT = 8.0

SIGNS = {"words": 1, "network": 1, "refuted": -1, "marked": -1, "coverage": 1}
"""Which way each feature may count: more support by words or network never lowers the odds."""
CONFLICT_SIGNS = {"words_conflict": 1, "refuted": 1, "versus": 1}


def supporting(readings: Sequence[Held]) -> Held | None:
    """The reading that supports the statement most; None where there is no window."""
    return max(readings, key=lambda held: held.classes[SUPPORTED], default=None)


def refuting(readings: Sequence[Held]) -> Held | None:
    """The reading that contradicts it most, of windows about the same thing; None where none is."""
    about = [held for held in readings if held.coverage >= ABOUT]
    return max(about, key=lambda held: held.classes[CONTRADICTED], default=None)


def features_of(words: float, conflict: bool, readings: Sequence[Held]) -> Mapping[str, float]:
    """Features by name: those of `SIGNS`, those of `CONFLICT_SIGNS`, and `agreed`.

    `words`: the lexical judge's log-odds of support; `conflict`: it says `contradicted`. `agreed`: the probability of
    contradiction by which the network bears that out, 0 without such a conflict.
    """
    best, against = supporting(readings), refuting(readings)
    network = log_odds(best.classes[SUPPORTED]) if best else -_LIMIT
    refuted = log_odds(against.classes[CONTRADICTED]) if against else -_LIMIT
    versus = 0.0
    if against:
        versus = math.log((against.classes[CONTRADICTED] + 1e-6) / (against.classes[NOT_FOUND] + 1e-6))
    marked = 0.0
    if best and len(best.marks):
        marked = float(np.sort(best.marks)[-2:].mean())
    return {
        "words": _within(words),
        "network": _within(network),
        "refuted": _within(refuted),
        "marked": marked,
        "coverage": max((held.coverage for held in readings), default=0.0),
        "words_conflict": float(conflict),
        "agreed": float(conflict) * (against.classes[CONTRADICTED] if against else 0.0),
        "versus": _within(versus),
    }


def _within(value: float) -> float:
    return max(-_LIMIT, min(_LIMIT, value))
