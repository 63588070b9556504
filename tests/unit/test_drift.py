"""Drift: distances that are 0 where nothing moved, and levels that chance stays under."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from metrics.baseline import Baseline, Sketches, distribution_of
from metrics.drift import NullLevels, Sample, drift
from metrics.drift_watch import DriftReading, DriftWatch
from metrics.ranges import SHARE, SIMILARITY, Range
from metrics.rolling import Spans
from metrics.sketch import DIMENSION, encode_sketch
from metrics.sketch_distance import sketch_distance
from metrics.sketch_reservoir import SLICE_KEPT, WINDOW_KEPT, Reservoirs, Sampled

EN, ZH, ALL = ("desk", "en"), ("desk", "zh"), ("all", "all")
NOW = 1_790_000_000.0


def sample(scores: list[float], range_: Range = SHARE, weight: float = 1.0) -> Sample:
    masses = np.bincount([range_.bin_of(score) for score in scores], minlength=range_.bins) * weight
    return Sample(masses.astype(float), len(scores), float(len(scores)))


def test_the_statistics_of_a_known_pair() -> None:
    found = drift(sample([1.0] * 60 + [0.5] * 40), sample([1.0] * 80 + [0.5] * 20), SHARE)
    assert found.ks == pytest.approx(0.2)
    assert found.wasserstein == pytest.approx(0.2 * 0.48, abs=0.005)  # from the bin of 0.5 to the one that ends at 1
    assert found.psi == pytest.approx(0.2 * np.log(4 / 2) + 0.2 * np.log(8 / 6), rel=0.06)


@settings(deadline=None)  # the first call of numpy takes longer than all others
@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.lists(st.floats(0, 1), min_size=1, max_size=50))
@example([1.0], [0.0] * 7 + [0.5, 0.75, 0.875, 0.875, 0.8125])  # shares that add up to a little more than 1
def test_statistics_are_finite_and_none_for_the_same_sample(one: list[float], other: list[float]) -> None:
    found = drift(sample(one), sample(other), SHARE)
    assert 0.0 <= found.ks <= 1.0
    assert 0.0 <= found.wasserstein <= 1.0
    assert 0.0 <= found.psi < np.inf
    same = drift(sample(one), sample(one, weight=7.0), SHARE)
    assert (same.ks, same.wasserstein, same.psi) == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [(50, 500), (500, 100)])
@pytest.mark.parametrize("graded", [True, False])
def test_chance_alone_stays_under_the_null_level(n: int, m: int, graded: bool) -> None:
    """150 pairs of one distribution: 1 % above is meant; 6 of 150 would be three standard errors and more."""
    rng = np.random.default_rng(11)
    range_ = SHARE if graded else SIMILARITY

    def drawn(number: int) -> Sample:
        scores = rng.binomial(4, 0.92, number) / 4 if graded else rng.normal(0.85, 0.05, number)
        return sample(scores.tolist(), range_)

    null, above = NullLevels(), np.zeros(3)
    for _ in range(150):
        one, other = drawn(n), drawn(m)
        found, high = drift(one, other, range_), null.of(one, other, range_)
        above += [found.psi > high.psi, found.ks > high.ks, found.wasserstein > high.wasserstein]
    assert (above <= 6).all(), above


def test_a_real_fall_is_above_the_null_level() -> None:
    rng = np.random.default_rng(12)
    before = sample((rng.binomial(4, 0.92, 1000) / 4).tolist())
    after = sample((rng.binomial(4, 0.82, 300) / 4).tolist())
    found, high = drift(after, before, SHARE), NullLevels().of(after, before, SHARE)
    assert found.psi > high.psi
    assert found.ks > high.ks
    assert found.wasserstein > high.wasserstein


# -- sketches ---------------------------------------------------------------------------------------------------------


def questions(rng: np.random.Generator, topics: np.ndarray, n: int) -> np.ndarray:
    return (topics[rng.integers(0, len(topics), n)] + 0.06 * rng.standard_normal((n, 32)) + 0.1).astype(np.float32)


def test_new_topics_are_told_from_chance() -> None:
    rng = np.random.default_rng(13)
    topics = rng.standard_normal((6, 32)) * 0.1
    above = {0: 0, 50: 0}
    for _ in range(40):
        reference = questions(rng, topics[:5], 512)
        for new in above:
            recent = np.concatenate([questions(rng, topics[:5], 250 - new), questions(rng, topics[5:], new)])
            found = sketch_distance(recent, reference)
            assert found is not None
            above[new] += found.mmd > found.null_high
    assert above[0] <= 3
    assert above[50] >= 36


def test_too_few_sketches_have_no_distance() -> None:
    points = np.zeros((10, DIMENSION), np.float32)
    assert sketch_distance(points, points) is None
    assert sketch_distance(np.ones((100, 32), np.float32), np.ones((100, 32), np.float32)) is None


def sketches(number: int) -> dict[str, str]:
    vector = np.zeros(64, np.float32)
    vector[number % 64] = 1.0
    return {"question": encode_sketch(vector), "context": encode_sketch(-vector)}


def read(reservoirs: Reservoirs, now: float = NOW) -> dict[tuple[str, tuple[str, ...], str], Sampled]:
    return {(each.part, each.segment, each.window): each for each in reservoirs.read(now, reservoirs.spans())}


def test_a_reservoir_is_bounded_and_the_same_whatever_the_order() -> None:
    answers = [(f"evt-{i}", sketches(i), NOW - 3500 + i) for i in range(3000)]
    one, other = Reservoirs({"1h": 3600.0}, [EN, ZH]), Reservoirs({"1h": 3600.0}, [EN, ZH])
    for name, sketch, at in answers:
        one.add(name, sketch, 0.5, "e5", EN, at, NOW)
    for name, sketch, at in answers[1000:] + answers[:1000]:
        other.add(name, sketch, 0.5, "e5", EN, at, NOW)
    found, again = read(one)["question", EN, "1h"], read(other)["question", EN, "1h"]
    assert SLICE_KEPT < len(found.recent) <= WINDOW_KEPT
    assert np.array_equal(found.recent, again.recent)
    assert len(read(one)["question", ZH, "1h"].recent) == 0
    assert np.array_equal(read(one)["context", ALL, "1h"].recent, read(one)["context", EN, "1h"].recent)


def test_a_reservoir_weighs_answers_as_the_gauges_do() -> None:
    """Half of the events are sampled always, half one in ten: of what is kept, each half must be half."""
    reservoirs = Reservoirs({"1h": 3600.0}, [EN])
    for i in range(4000):
        always = i % 11 != 0
        reservoirs.add(
            f"evt-{i}", sketches(0 if always else 1), 1.0 if always else 0.1, "e5", EN, NOW - 3500 + i * 0.8, NOW
        )
    kept = read(reservoirs)["question", EN, "1h"].recent
    rare = np.isclose(kept, kept[0]).all(axis=1).mean()
    assert 0.35 <= rare <= 0.65


def test_a_reservoir_tells_the_window_from_the_one_before_and_forgets_what_is_older() -> None:
    reservoirs = Reservoirs({"1h": 3600.0}, [EN])
    for i, age in enumerate((100.0, 5000.0, 5100.0, 12_000.0)):
        reservoirs.add(f"evt-{i}", sketches(i), 1.0, "e5", EN, NOW - age, NOW)
    found = read(reservoirs)["question", EN, "1h"]
    assert (len(found.recent), len(found.previous)) == (1, 2)


def test_what_is_no_sketch_is_left_out_and_another_model_is_not_compared() -> None:
    reservoirs = Reservoirs({"1h": 3600.0}, [EN])
    reservoirs.add("a", {"question": "no base64!"}, 1.0, "e5", EN, NOW - 9, NOW)
    reservoirs.add("b", {"context": sketches(1)["context"]}, 1.0, "e5", EN, NOW - 8, NOW)
    found = read(reservoirs)
    assert len(found["question", EN, "1h"].recent) == 0
    assert len(found["context", EN, "1h"].recent) == 1
    reservoirs.add("c", sketches(3), 1.0, "other model", EN, NOW - 7, NOW)
    assert len(read(reservoirs)["context", EN, "1h"].recent) == 1
    assert read(reservoirs)["context", EN, "1h"].embedder == "other model"


# -- the watch --------------------------------------------------------------------------------------------------------


def baseline() -> Baseline:
    rng = np.random.default_rng(14)
    scores = (rng.binomial(4, 0.92, 400) / 4).tolist()
    topics = rng.standard_normal((5, 32)) * 0.1
    kept = tuple(encode_sketch(np.asarray(v, np.float32)) for v in questions(rng, topics, 60))
    return Baseline(
        created=NOW,
        segment_keys=("app", "lang"),
        definitions={"faithfulness": "0badcafe"},
        versions={},
        distributions=(
            distribution_of("faithfulness", "0badcafe", ALL, scores),
            distribution_of("faithfulness", "0badcafe", ("all", "zh"), scores[:20]),
        ),
        sketches=(Sketches("question", "e5", ALL, 60, kept),),
    )


def watched(spans: list[Spans], sampled: list[Sampled] | None = None, **changes: float) -> list[DriftReading]:
    watch = DriftWatch(baseline(), ("app", "lang"), minimum_samples=50.0, clock=lambda: 0.0)
    watch.update(spans, sampled or [], NOW, 1.0)
    return watch.readings()


def test_scores_are_compared_with_the_baseline_and_with_the_span_before() -> None:
    recent, previous = sample([1.0] * 50 + [0.5] * 100), sample([1.0] * 140 + [0.5] * 10)
    readings = watched([Spans(ZH, "faithfulness", "0badcafe", "1h", recent, previous)])
    assert {reading.key.reference for reading in readings} == {"baseline", "previous"}
    for reading in readings:
        assert reading.recent == 150.0
        assert reading.values.keys() == reading.null_high.keys() == {"psi", "ks", "wasserstein"}
        assert all(reading.values[name] > high for name, high in reading.null_high.items())
    # The baseline of zh alone is too small, so that of the whole set is taken.
    assert {reading.reference for reading in readings} == {400.0, 150.0}


def test_small_samples_and_other_definitions_are_not_compared() -> None:
    few, many = sample([1.0] * 40), sample([1.0] * 100)
    assert watched([Spans(EN, "faithfulness", "0badcafe", "1h", few, many)]) == []
    assert watched([Spans(EN, "faithfulness", "ffffffff", "1h", many, None)]) == []
    assert watched([Spans(EN, "faithfulness", "0badcafe", "1h", None, many)]) == []


def test_sketches_are_compared_with_those_of_the_same_model_only() -> None:
    rng = np.random.default_rng(15)
    points, none = questions(rng, rng.standard_normal((5, 32)), 60), np.empty((0, 32), np.float32)
    found = watched([], [Sampled("question", EN, "1h", "e5", points, none)])
    assert [(reading.key.what, reading.key.reference) for reading in found] == [("question", "baseline")]
    assert watched([], [Sampled("question", EN, "1h", "other", points, none)]) == []


def test_the_stalest_comparison_is_made_first_and_what_is_gone_is_shown_no_longer() -> None:
    ticks = iter(range(1000))
    watch = DriftWatch(None, ("app", "lang"), minimum_samples=10.0, clock=lambda: float(next(ticks)))
    one = sample([1.0] * 100)
    spans = [Spans(EN, name, "0badcafe", "1h", one, one) for name in ("a", "b", "c")]
    for expected in (1, 2, 3):
        watch.update(spans, [], NOW, 0.5)
        assert len(watch.readings()) == expected
    watch.update(spans[:1], [], NOW + 1, 0.5)
    assert [reading.key.what for reading in watch.readings()] == ["a"]
    watch.forget()
    assert watch.readings() == []
