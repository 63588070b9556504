"""Which precision the trained layers run in here: the quickest that says nearly what float32 says, then remembered."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from metrics.encoder import Precision
from metrics.precision import FILE, machine, remember, remembered
from metrics.self_test import PASSAGES
from metrics.verifier.reader import Opinions

log = logging.getLogger(__name__)

CANDIDATES: tuple[Precision, ...] = ("bf16", "int8")
MEAN_DIFFERENCE = 0.03
"""Largest mean difference of a probability from float32's over the self-test: far below what moves a ranking."""
LEAST_GAIN = 1.10
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """One precision on the self-test: seconds it took at best, and the mean difference of a probability from float32's
    (infinite where one is not finite)."""

    precision: Precision
    seconds: float
    difference: float


def choose(trials: Sequence[Trial]) -> Precision:
    """The quickest that agrees, if it is more than a tenth quicker than float32; else float32.

    >>> choose([Trial("fp32", 1.0, 0.0), Trial("bf16", 0.6, 0.001), Trial("int8", 0.4, 0.01)])
    'int8'
    >>> choose([Trial("fp32", 1.0, 0.0), Trial("int8", 0.4, 0.2)])
    'fp32'
    """
    exact = next(trial for trial in trials if trial.precision == "fp32")
    fit = [t for t in trials if t.difference <= MEAN_DIFFERENCE and t.seconds * LEAST_GAIN < exact.seconds]
    return min(fit, key=lambda t: t.seconds).precision if fit else "fp32"


def chosen(
    folder: Path, network: str, make: Callable[[Precision], Opinions], now: Callable[[], float] = time.perf_counter
) -> Precision:
    """The choice for `network` (its digest) on this machine, kept in `folder` beside that of the embedder."""
    key = f"verifier {network} {machine()}"
    choices = remembered(folder / FILE)
    with contextlib.suppress(KeyError, TypeError, StopIteration):
        known: Any = choices[key]
        return choose(tuple(Trial(**trial) for trial in known))
    trials = measured(make, now)
    for trial in trials:
        log.info("verifier in %s: %.2f s, probabilities within %.1e", trial.precision, trial.seconds, trial.difference)
    remember(folder / FILE, choices | {key: [asdict(trial) for trial in trials]})
    return choose(trials)


def measured(make: Callable[[Precision], Opinions], now: Callable[[], float] = time.perf_counter) -> tuple[Trial, ...]:
    """Every precision on the same premises and statements, float32 first. What this torch cannot do is left out."""
    networks: dict[Precision, Opinions] = {"fp32": make("fp32")}
    said = {"fp32": _probabilities(networks["fp32"])}
    for precision in CANDIDATES:
        try:
            candidate = make(precision)
            said[precision] = _probabilities(candidate)
        except (RuntimeError, NotImplementedError, AttributeError) as error:
            log.info("precision %s is not to be had here: %s", precision, str(error).splitlines()[0])
            continue
        networks[precision] = candidate
    seconds = _timed(networks, now)
    return tuple(Trial(p, seconds[p], _apart(said[p], said["fp32"])) for p in networks)


def _timed(networks: Mapping[Precision, Opinions], now: Callable[[], float]) -> dict[Precision, float]:
    """In turn, and the best of each: other work on the machine slows a run, never speeds it up."""
    seconds = dict.fromkeys(networks, float("inf"))
    for _ in range(ROUNDS):
        for precision, network in networks.items():
            started = now()
            _probabilities(network)
            seconds[precision] = min(seconds[precision], now() - started)
    return seconds


def _probabilities(network: Opinions) -> npt.NDArray[np.float64]:
    """Every passage of the self-test against itself, its neighbour and its own beginning: shape (statements, 3)."""
    asked = [(passage, [passage, PASSAGES[k - 1], passage[: len(passage) // 2]]) for k, passage in enumerate(PASSAGES)]
    return np.array([opinion.classes for own in network.opinions(asked) for opinion in own], np.float64)


def _apart(said: npt.NDArray[np.float64], exact: npt.NDArray[np.float64]) -> float:
    difference = np.abs(said - exact)
    return float(difference.mean()) if np.isfinite(difference).all() else float("inf")
