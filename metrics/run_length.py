"""How high a CUSUM must rise before it is an alarm, for a given expected number of samples between false alarms.

The CUSUM of increments g is S = max(0, S + g); its average run length (ARL) to a level h is found by treating S as a
Markov chain on a lattice (Brook and Evans, Biometrika 59, 1972). Nothing is assumed of the increments' distribution but
that they are independent: graded scores are skewed and lumpy, weighted ones more so.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

STEPS = 8
"""Steps of the lattice in one standard deviation of the increments."""
MOST_STATES = 480
_NODES = ((0.0, 2.0 / 3.0), (-math.sqrt(3.0), 1.0 / 6.0), (math.sqrt(3.0), 1.0 / 6.0))
"""Three-point Gauss-Hermite rule for a standard normal."""


def threshold(increments: Array, arl: float, uncertainty: float) -> float:
    """The level h at which the average run length is `arl` samples; infinity where no level up to 60 deviations is.

    `increments`: a sample of g without change, shape (n,), of negative mean and some spread. `uncertainty`: the
    standard error of that mean. The rate of false alarms, 1 / ARL, is averaged over it, because a mean that is off by a
    little makes many more alarms in one direction than it saves in the other.
    """
    spread = float(increments.std())
    step = spread / STEPS
    shifts = [(0.0, 1.0)] if uncertainty < 0.02 * spread else [(z * uncertainty, share) for z, share in _NODES]
    lattices = [(_lattice(increments + shift, step), share) for shift, share in shifts]
    known: dict[int, float] = {}

    def rate(states: int) -> float:
        """False alarms per sample."""
        if states not in known:
            known[states] = sum(share / _run_length(*lattice, states) for lattice, share in lattices)
        return known[states]

    low, high = 1, 64
    while rate(high) > 1.0 / arl:
        if high >= MOST_STATES:
            return math.inf
        low, high = high, min(high + high // 2, MOST_STATES)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rate(middle) > 1.0 / arl else (low, middle)
    # Between the two lattice levels the logarithm of the rate is all but a straight line.
    part = (math.log(rate(low)) + math.log(arl)) / (math.log(rate(low)) - math.log(rate(high))) if low > 1 else 1.0
    return (low + min(max(part, 0.0), 1.0)) * step


def _lattice(increments: Array, step: float) -> tuple[Array, int]:
    """Probabilities of the increments in whole steps, and how many steps the first one is. A value between two lattice
    points is shared between them so that its mean stays."""
    places = increments / step
    below = np.floor(places)
    first = int(below.min())
    index = (below - first).astype(np.intp)
    upper = places - below
    size = int(index.max()) + 2
    masses = np.bincount(index, 1.0 - upper, size) + np.bincount(index + 1, upper, size)
    return masses / len(increments), first


def _run_length(masses: Array, first: int, states: int) -> float:
    """Expected samples from S = 0 to S >= `states` steps."""
    cumulative = np.cumsum(masses)
    padded = np.zeros(2 * states)
    offsets = np.arange(-states, states) - first
    inside = (offsets >= 0) & (offsets < len(masses))
    padded[inside] = masses[offsets[inside]]
    rows, columns = np.ogrid[:states, :states]
    moves = padded[columns - rows + states]
    ends = np.clip(-np.arange(states) - first, -1, len(masses) - 1)
    moves[:, 0] = np.where(ends >= 0, cumulative[ends], 0.0)
    try:
        lengths = np.linalg.solve(np.eye(states) - moves, np.ones(states))
    except np.linalg.LinAlgError:
        return math.inf
    length = float(lengths[0])
    return length if 1.0 <= length < 1e15 else math.inf
