"""What moved: the parts add up, a planted cause is named, and noise is not."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.contrast import Contrast, Kind, Part, Verdict, contrast
from metrics.contrast_sums import ABSENT, MAX_VALUES, SpanSums
from metrics.mean_differences import Cell, difference_test, holm
from tests.contrasted_spans import Traffic, answers, span
from tests.unit.test_interval import moments

CALM = Traffic(400)
PLAIN = CALM.values


def contrasts(before: Traffic, after: Traffic, runs: int, seed: int) -> list[Contrast]:
    rng = random.Random(seed)
    return [contrast(span(before, rng), span(after, rng), 0.0, 1.0) for _ in range(runs)]


def named(found: list[Contrast]) -> list[tuple[str, Kind, str]]:
    return [(part.dimension, part.kind, part.values[0]) for each in found for part in each.named]


def rows(found: Contrast, dimension: str) -> list[Part]:
    return [part for part in found.parts if part.dimension == dimension]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Traffic(150), Traffic(60)),
        (Traffic(150, probabilities=(1.0, 0.3)), Traffic(60, probabilities=(1.0, 0.3))),
        (Traffic(150, {"model": ["m-1", "m-2"]}), Traffic(60, {"model": ["m-1", "m-3"]})),
    ],
    ids=["plain", "weights", "a new value"],
)
def test_noise_is_named_in_five_of_a_hundred_contrasts_at_most(before: Traffic, after: Traffic) -> None:
    """120 contrasts without a cause: more than 13 that name anything happen once in 200 times at 5 %."""
    assert sum(bool(each.named) for each in contrasts(before, after, 120, 31)) <= 13


def test_a_fall_of_everything_is_not_blamed_on_a_label() -> None:
    everything = {("lang", lang): 0.15 for lang in ("en", "zh")}
    found = contrasts(CALM, Traffic(150, falls=everything), 40, 32)
    assert all(each.real for each in found)
    assert len(named(found)) <= 6


def test_the_value_that_fell_is_named_and_nothing_else() -> None:
    found = contrasts(CALM, Traffic(150, falls={("lang", "zh"): 0.2}), 25, 33)
    assert named(found).count(("lang", Kind.WITHIN, "zh")) >= 23
    assert len(named(found)) <= 28
    [part] = [part for part in found[0].named if part.values == ("zh",)]
    assert part.size is not None
    assert part.low is not None
    assert part.high is not None
    assert part.low < part.size < part.high < 0.0
    assert part.size == pytest.approx(-0.1, abs=0.05)
    [other] = [part for part in rows(found[0], "lang") if part.values == ("en",)]
    assert other.verdict is Verdict.AGAINST


def test_a_new_model_is_compared_with_what_it_replaced() -> None:
    before = Traffic(400, {**PLAIN, "model": ["m-1", "m-0"]})
    after = Traffic(300, {**PLAIN, "model": ["m-2", "m-0"]}, {("model", "m-2"): 0.2})
    found = contrasts(before, after, 20, 34)
    assert named(found).count(("model", Kind.REPLACED, "m-2")) >= 18
    part = next(part for part in rows(found[0], "model") if part.kind is Kind.REPLACED)
    assert (part.values, part.gone) == (("m-2",), ("m-1",))
    # Field case: a release that takes over all traffic has nothing beside it, and is compared with what was before.
    whole = contrasts(
        Traffic(400, {**PLAIN, "model": ["m-1"]}),
        Traffic(300, {**PLAIN, "model": ["m-2"]}, {("model", "m-2"): 0.1}),
        10,
        35,
    )
    assert named(whole).count(("model", Kind.REPLACED, "m-2")) >= 9
    [only] = rows(whole[0], "model")
    assert only.part == pytest.approx(whole[0].change)


def test_a_value_that_only_appears_or_vanishes_is_compared_with_the_rest() -> None:
    both, one = {"model": ["m-1", "m-2"]}, {"model": ["m-1"]}
    bad = {("model", "m-2"): 0.3}
    appeared = contrasts(Traffic(300, one), Traffic(200, both, bad), 15, 36)
    assert named(appeared).count(("model", Kind.APPEARED, "m-2")) >= 13
    vanished = contrasts(Traffic(300, both, bad), Traffic(200, one), 15, 37)
    assert named(vanished).count(("model", Kind.VANISHED, "m-2")) >= 13


def test_a_canary_that_took_over_is_what_replaced() -> None:
    """One answer in 50 had the new model before: too few to compare it with itself."""
    before = Traffic(1000, {"model": ["m-1"] * 49 + ["m-2"]}, {("model", "m-2"): 0.2})
    after = Traffic(300, {"model": ["m-2"]}, {("model", "m-2"): 0.2})
    assert named(contrasts(before, after, 5, 38)) == [("model", Kind.REPLACED, "m-2")] * 5


def test_a_changed_mix_is_told_from_a_fall() -> None:
    worse = {("lang", "zh"): 0.3}
    before, after = (
        Traffic(400, {"lang": ["en"] * 4 + ["zh"]}, worse),
        Traffic(300, {"lang": ["en", "zh", "zh"]}, worse),
    )
    found = contrasts(before, after, 15, 39)
    assert {(dimension, kind) for dimension, kind, _ in named(found)} == {("lang", Kind.MIX)}
    assert len(named(found)) >= 14
    part = next(part for part in rows(found[0], "lang") if part.kind is Kind.MIX)
    assert part.size == pytest.approx(-0.14, abs=0.07)


def test_intervals_hold() -> None:
    """95 % intervals of what a value explains, 150 contrasts: three standard errors are 0.053."""
    truth, inside = -0.1, 0
    lang = {"lang": ["en", "zh"]}
    for each in contrasts(Traffic(200, lang), Traffic(100, lang, {("lang", "zh"): 0.2}), 150, 40):
        [part] = [part for part in rows(each, "lang") if part.values == ("zh",)]
        assert part.low is not None
        assert part.high is not None
        inside += part.low <= truth <= part.high
    assert inside / 150 >= 0.95 - 0.053


labelled = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from(["x", "y", "z", ""]),
        st.sampled_from([0.0, 0.5, 1.0]),
        st.floats(0.05, 1),
    ),
    min_size=1,
    max_size=80,
)


@settings(max_examples=60, deadline=None)
@given(labelled, labelled)
def test_the_parts_of_every_dimension_add_up(
    first: list[tuple[str, str, float, float]], second: list[tuple[str, str, float, float]]
) -> None:
    spans = []
    for rows_ in (first, second):
        sums = SpanSums()
        for one, other, score, probability in rows_:
            labels = {"one": one} | ({"other": other} if other else {})
            sums.add(labels, score, 1.0 / probability, 0.0)
        spans.append(sums)
    found = contrast(spans[0], spans[1], 0.0, 1.0)
    assert found.low <= found.change <= found.high
    for dimension in ("one", "other"):
        parts = rows(found, dimension)
        if parts:
            assert math.fsum(part.part for part in parts) == pytest.approx(found.change, abs=1e-9)
        for part in parts:
            if part.size is not None and part.low is not None and part.high is not None:
                assert part.low <= part.size <= part.high


def test_too_few_scores_are_said_to_be_too_few() -> None:
    rng = random.Random(41)
    found = contrast(span(Traffic(300), rng), span(Traffic(8), rng), 0.0, 1.0)
    assert found.parts
    assert {part.verdict for part in found.parts} == {Verdict.TOO_FEW}
    with pytest.raises(ValueError, match="scores in both"):
        contrast(SpanSums(), span(Traffic(8), rng), 0.0, 1.0)


def test_labels_without_end_take_bounded_memory() -> None:
    sums = SpanSums()
    for i in range(3 * MAX_VALUES):
        sums.add({"model": f"m-{i}", f"key-{i}": "x"}, 1.0, 1.0, 0.0)
    assert len(sums.values("model")) == MAX_VALUES + 1
    assert len(sums.dimensions) <= 20
    assert sum(held[0] for held in sums.values("model").values()) == 3 * MAX_VALUES


def test_an_answer_without_the_label_counts_as_one_that_has_none() -> None:
    sums = SpanSums()
    sums.add({"model": "m-1"}, 1.0, 2.0, 0.0)
    sums.add({}, 0.0, 4.0, 0.0)
    assert {name: held[1] for name, held in sums.values("model").items()} == {"m-1": 2.0, ABSENT: 4.0}


def test_a_difference_of_means_has_the_interval_of_its_parts() -> None:
    good, bad = (
        Cell(moments([1.0] * 46 + [0.0] * 4, [1.0] * 50), 0.0, 1.0),
        Cell(moments([1.0] * 30, [1.0] * 30), 0.0, 1.0),
    )
    found = difference_test([(1.0, good), (-1.0, bad)])
    assert found.size == pytest.approx(-0.08)
    assert found.low < -0.08 < found.high
    # Agresti and Min's setting: what p-value and interval say is the same.
    assert (found.p < 0.05) == (found.high < 0.0 or found.low > 0.0)
    assert difference_test([(1.0, good), (-1.0, good)]).p == pytest.approx(1.0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_adjusted_p_values_are_in_order_and_never_smaller(values: list[float]) -> None:
    adjusted = holm(values)
    assert all(after >= before for before, after in zip(values, adjusted, strict=True))
    assert sorted(adjusted) == [adjusted[i] for i in sorted(range(len(values)), key=lambda i: (values[i], adjusted[i]))]
    assert max(adjusted) <= 1.0


def test_weights_count() -> None:
    """A rare heavy value that fell moves the mean by its share of the traffic, not of the sample."""
    light, heavy = replace(CALM, probabilities=(1.0,)), replace(CALM, probabilities=(0.1,))
    rng = random.Random(42)
    spans = []
    for falls in ({}, {("lang", "zh"): 0.3}):
        sums = SpanSums()
        for traffic, lang in ((light, "en"), (heavy, "zh")):
            own = replace(traffic, values={"lang": [lang]}, falls=falls)
            for labels, score, probability in answers(own, rng):
                sums.add(labels, score, 1.0 / probability, 0.0)
        spans.append(sums)
    found = contrast(spans[0], spans[1], 0.0, 1.0)
    [part] = [part for part in rows(found, "lang") if part.values == ("zh",)]
    assert part.after.share == pytest.approx(10 / 11)
    assert part.part == pytest.approx(-0.3 * 10 / 11, abs=0.05)
