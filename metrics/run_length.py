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

STEPS = (8, 4, 2)
"""Steps of the lattice in one standard deviation of the increments: the finest that needs few enough states."""
MOST_STATES = 160
NEGLIGIBLE = 0.005
"""Uncertainty, in standard deviations of the increments, that makes no difference."""
_NODES = ((0.0, 2.0 / 3.0), (-math.sqrt(3.0), 1.0 / 6.0), (math.sqrt(3.0), 1.0 / 6.0))
"""Three-point Gauss-Hermite rule for a standard normal."""


def threshold(increments: Array, arl: float, uncertainty: float) -> float:
    """The level h at which the average run length is `arl` samples; infinity where no level up to 80 deviations is.

    `increments`: a sample of g without change, shape (n,), of negative mean and some spread. `uncertainty`: the
    standard error of that mean. The rate of false alarms, 1 / ARL, is averaged over it, because a mean that is off by a
    little makes many more alarms in one direction than it saves in the other.
    """
    spread = float(increments.std())
    shifts = [(0.0, 1.0)] if uncertainty < NEGLIGIBLE * spread else [(z * uncertainty, share) for z, share in _NODES]
    for steps in STEPS:
        step = spread / steps
        lattices = [(_lattice(increments + shift, step), share) for shift, share in shifts]
        states = _states(lattices, arl)
        if states is not None:
            return states * step
    return math.inf


def _states(lattices: list[tuple[tuple[Array, int], float]], arl: float) -> float | None:
    """The level in steps of the lattice; None where it needs too many states.

    The logarithm of the rate of false alarms is all but a straight line in the level, so that two far points tell where
    it must be looked at closely, and two near ones tell the rest.
    """

    def excess(states: int) -> float:
        """The logarithm of how much too often there are false alarms."""
        rate = sum(share / _run_length(*lattice, states) for lattice, share in lattices)
        return math.log(max(rate, 1e-300) * arl)

    about = _zero(32, excess(32), 80, excess(80))
    if not about < MOST_STATES - 8:
        return None
    near = max(int(about), 4)
    return max(_zero(near - 2, excess(near - 2), near + 2, excess(near + 2)), 1.0)


def _zero(left: int, above: float, right: int, below: float) -> float:
    """Where the line through two points crosses 0; infinity where it does not fall."""
    slope = (above - below) / (right - left)
    return left + above / slope if slope > 0.0 else math.inf


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
