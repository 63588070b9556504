"""Token windows and batches: every token is covered, every text comes back where it was."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.embedding import batches
from metrics.windows_of_tokens import pooled, spread, windows


@given(st.integers(1, 5000), st.integers(1, 600), st.integers(0, 599))
def test_windows_cover_every_token_and_overlap_as_asked(length: int, size: int, overlap: int) -> None:
    overlap = overlap % size
    spans = windows(length, size, overlap)
    assert spans[0][0] == 0
    assert spans[-1][1] == length
    assert all(end - start == min(size, length) for start, end in spans)
    for (start, end), (following, _) in itertools.pairwise(spans):
        assert start < following <= end - overlap or end == length


@given(st.integers(1, 300), st.integers(2, 40))
def test_windows_of_a_very_long_text_are_spread_over_all_of_it(number: int, most: int) -> None:
    spans = [(k, k + 1) for k in range(number)]
    found = spread(spans, most)
    assert len(found) == min(number, most)
    assert (found[0], found[-1]) == (spans[0], spans[-1])
    gaps = {after[0] - before[0] for before, after in itertools.pairwise(found)}
    assert not gaps or max(gaps) - min(gaps) <= 1
    assert number > most or found == spans


def test_windows_refuse_an_overlap_that_never_advances() -> None:
    with pytest.raises(ValueError, match="cannot overlap"):
        windows(100, 10, 10)


def test_pooled_is_the_token_weighted_mean_at_unit_length() -> None:
    a, b = np.array([1.0, 0.0], np.float32), np.array([0.0, 1.0], np.float32)
    found = pooled(np.stack([a, b]), [3, 1])
    expected = np.array([3.0, 1.0]) / np.sqrt(10)
    assert np.allclose(found, expected, atol=1e-7)
    assert pooled(a[None], [7]) is not None
    assert np.array_equal(pooled(a[None], [7]), a)


def test_pooled_of_windows_that_cancel_out_is_not_finite_instead_of_arbitrary() -> None:
    a = np.array([1.0, 0.0], np.float32)
    assert not np.isfinite(pooled(np.stack([a, -a]), [1, 1])).any()


@given(st.lists(st.integers(1, 700), max_size=80), st.integers(1, 2048))
def test_batches_hold_every_text_once_within_the_budget(lengths: list[int], budget: int) -> None:
    found = batches(lengths, budget)
    assert sorted(i for batch in found for i in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or sum(lengths[i] for i in batch) <= budget for batch in found)
