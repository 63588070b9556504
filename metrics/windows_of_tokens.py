"""Texts longer than a model's window: overlapping token windows, and one vector from theirs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def windows(length: int, size: int, overlap: int) -> list[tuple[int, int]]:
    """[start, end) of windows of at most `size` tokens that cover 0..length, neighbours sharing `overlap` tokens.

    The last window is moved back to full size rather than left short: a remainder of three tokens says nothing.

    >>> windows(10, 4, 1)
    [(0, 4), (3, 7), (6, 10)]
    >>> windows(3, 4, 1)
    [(0, 3)]

    Raises:
        ValueError: `overlap` is not below `size`.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"windows of {size} tokens cannot overlap by {overlap}")
    if length <= size:
        return [(0, length)]
    starts = [*range(0, length - size, size - overlap), length - size]
    return [(start, start + size) for start in starts]


MOST_WINDOWS = 32
"""Windows of one text that are read: some 15,000 tokens, or four seconds of two cores. What an answer of 200,000
characters is about is plain from them, and one such answer must not hold up all others for a minute."""


def spread(spans: Sequence[tuple[int, int]], most: int = MOST_WINDOWS) -> list[tuple[int, int]]:
    """At most `most` of the windows, evenly spread, the first and the last among them; all where there are no more.

    >>> spread([(k, k + 1) for k in range(10)], 4)
    [(0, 1), (3, 4), (6, 7), (9, 10)]
    """
    if len(spans) <= most:
        return list(spans)
    return [spans[k * (len(spans) - 1) // (most - 1)] for k in range(most)]


def pooled(vectors: npt.NDArray[np.float32], tokens: Sequence[int]) -> npt.NDArray[np.float32]:
    """One unit vector from those of the windows, shape (windows, dimension): their mean weighted by `tokens`.

    Not finite where the windows cancel out or hold something that is not finite.
    """
    if len(vectors) == 1:
        return np.asarray(vectors[0], np.float32)
    mean = np.average(vectors.astype(np.float64), axis=0, weights=np.asarray(tokens, np.float64))
    norm = np.linalg.norm(mean)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(mean / norm if norm > 1e-9 else np.full_like(mean, np.nan), np.float32)
