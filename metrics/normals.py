"""Standard normal draws from a fixed seed, without numpy.random: loading that takes 7 MB, and the monitor is small."""

from __future__ import annotations

import math
import random

import numpy as np
import numpy.typing as npt


def fixed_normals(seed: int, rows: int, columns: int) -> npt.NDArray[np.float64]:
    """Independent standard normals, shape (rows, columns); the same for the same arguments.

    Box and Muller, Annals of Mathematical Statistics 29, 1958.
    """
    pairs = (rows * columns + 1) // 2
    words = np.frombuffer(random.Random(seed).randbytes(16 * pairs), "<u8").reshape(2, pairs)
    # In (0, 1]: the logarithm of 0 is none.
    uniform = ((words >> np.uint64(11)) + 1.0) / 2.0**53
    radius, angle = np.sqrt(-2.0 * np.log(uniform[0])), 2.0 * math.pi * uniform[1]
    both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
    return np.asarray(both[: rows * columns].reshape(rows, columns))
