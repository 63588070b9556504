"""The baseline file: what is written is what is read, and nothing else passes for one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.baseline import (
    Baseline,
    BaselineError,
    BaselineThreshold,
    Operating,
    Sketches,
    decode_baseline,
    distribution_of,
    encode_baseline,
)
from metrics.sketch import encode_sketch

KEYS = ("app", "lang")
WHOLE, HR, HR_ZH, ZH = ("all", "all"), ("hr", "all"), ("hr", "zh"), ("all", "zh")


def sketches(segment: tuple[str, str], n: int) -> Sketches:
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((n, 384)).astype(np.float32)
    sample = tuple(encode_sketch(v / np.linalg.norm(v)) for v in vectors)
    return Sketches("question", "model-1", segment, 40, sample)


def baseline() -> Baseline:
    values = [0.5, 0.75, 1.0, 1.0]
    return Baseline(
        created=1_796_000_000.0,
        segment_keys=KEYS,
        definitions={"faithfulness": "aaaaaaaa", "topic_similarity": "bbbbbbbb"},
        versions={"embedder": "model-1"},
        distributions=(
            distribution_of("faithfulness", "aaaaaaaa", WHOLE, values),
            distribution_of("faithfulness", "aaaaaaaa", HR, values[:3]),
            distribution_of("faithfulness", "aaaaaaaa", ZH, values[:2]),
            distribution_of("faithfulness", "aaaaaaaa", HR_ZH, values[:1]),
            distribution_of("topic_similarity", "bbbbbbbb", WHOLE, [-0.2, 0.8]),
        ),
        sketches=(sketches(WHOLE, 20), sketches(HR, 5)),
        thresholds=(
            BaselineThreshold(
                "faithfulness", "aaaaaaaa", WHOLE, 0.6, "false_alarms", 0.05, Operating(4, 0, 0.25, 0.01, 0.7)
            ),
        ),
        source={"good": "good.jsonl, 4 answers"},
    )


def test_what_is_written_is_what_is_read() -> None:
    assert decode_baseline(encode_baseline(baseline())) == baseline()
    assert baseline().sketches[0].points().shape == (20, 32)


def test_a_distribution_says_what_the_values_are() -> None:
    found = distribution_of("faithfulness", "aaaaaaaa", WHOLE, [0.5, 0.75, 1.0, 1.0])
    assert (found.n, found.mean) == (4, 0.8125)
    assert found.spread == pytest.approx(np.std([0.5, 0.75, 1.0, 1.0], ddof=1))
    assert (found.histogram[25], found.histogram[37], found.histogram[49]) == (1, 1, 2)
    assert (found.quantiles[0], found.quantiles[50], found.quantiles[100]) == (0.5, 0.875, 1.0)
    assert found.quantile(0.5) == 0.875
    assert distribution_of("faithfulness", "aaaaaaaa", WHOLE, [0.5]).spread == 0.0


def test_the_most_specific_segment_with_enough_scores_is_found() -> None:
    known = baseline()

    def n(minimum: int, **labels: str) -> int | None:
        found = known.distribution("faithfulness", "aaaaaaaa", labels, minimum)
        return None if found is None else found.n

    assert n(1, app="hr", lang="zh") == 1
    assert n(2, app="hr", lang="zh") == 2  # the later key (lang) of two that are equally specific
    assert n(3, app="hr", lang="zh") == 3
    assert n(4, app="hr", lang="zh") == 4
    assert n(5, app="hr", lang="zh") is None
    assert n(1, app="it", lang="en") == n(1) == n(1, app="all", lang="all") == 4
    assert known.distribution("faithfulness", "cccccccc", {}) is None
    found = known.sketches_of("question", "model-1", {"app": "hr", "lang": "en"}, minimum=10)
    assert found is not None
    assert found.segment == WHOLE
    assert known.sketches_of("question", "model-2", {}) is None
    assert known.sketches_of("context", "model-1", {}) is None


def changed(path: str, value: Any) -> bytes:
    data = json.loads(encode_baseline(baseline()))
    node = data
    *steps, last = path.split(".")
    for step in steps:
        node = node[int(step) if step.isdigit() else step]
    if value is None:
        del node[last]
    else:
        node[int(last) if last.isdigit() else last] = value
    return json.dumps(data).encode()


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("v", 2, "upgrade"),
        ("segment_keys", ["app"], "segment"),
        ("distributions", None, "calibrate"),
        ("distributions.0.n", 5, "histogram"),
        ("distributions.0.quantiles.3", 1.5, "ascending"),
        ("distributions.0.quantiles.100", 1.5, "outside"),
        ("distributions.0.mean", "0.5", "number"),
        ("distributions.0.definition", None, "definition"),
        ("sketches.0.part", "answer", "question or context"),
        ("sketches.0.sample.0", "AAAAAAAA", "32 values"),
        ("thresholds.0.value", 1.5, "outside"),
        ("thresholds.0.method", "guess", "guess"),
        ("created", "yesterday", "yesterday"),
    ],
)
def test_a_damaged_file_is_refused_with_what_is_wrong(path: str, value: Any, says: str) -> None:
    with pytest.raises(BaselineError, match=says):
        decode_baseline(changed(path, value))


@given(st.one_of(st.binary(max_size=40), st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["distributions", "segment_keys", "created", "v", "definitions", "versions"]), inner
    ), max_leaves=12,
).map(lambda value: json.dumps(value).encode())))  # fmt: skip
def test_no_bytes_end_in_a_traceback(raw: bytes) -> None:
    with pytest.raises(BaselineError):
        decode_baseline(raw)
