"""What is fitted over words and network: on drawn statements whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metrics.lexical.fit import Example, balanced_accuracy, fit, held_out, placed
from metrics.verifier.features import CONFLICT_SIGNS, SIGNS
from metrics.verifier.fit import ANSWERS, NAMES, answer_curve, conflict_fit, joined_of, report


def drawn(seed: int, answers: int, network: float, words: float) -> list[Example]:
    """Answers of 1 to 5 statements, faithful where all are supported; `network` and `words` say how much each knows."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(answers):
        count = int(rng.integers(1, 6))
        true = rng.random(count) < (1.0 if k % 2 else 0.6)
        features = np.zeros((count, len(NAMES)))
        side = np.where(true, 1.0, -1.0)
        features[:, NAMES.index("network")] = network * side + rng.normal(0, 1, count)
        features[:, NAMES.index("words")] = words * side + rng.normal(0, 1, count)
        features[:, NAMES.index("coverage")] = rng.random(count)
        found.append(Example(features, int(true.all()), f"{seed}-{k // 3}", None))
    return found


@pytest.fixture(scope="module")
def sets() -> dict[str, list[Example]]:
    return {ANSWERS[0]: drawn(1, 240, 1.6, 0.8), ANSWERS[1]: drawn(2, 150, 1.6, 0.8)}


def test_signs_hold_and_both_sources_count(sets: dict[str, list[Example]]) -> None:
    found = fit(sets, NAMES, SIGNS)
    weights = dict(zip(NAMES, found.weights, strict=True))
    assert all(weights[name] * sign >= 0 for name, sign in SIGNS.items())
    assert weights["network"] > weights["words"] > 0


def test_whole_answers_are_calibrated_on_folds_that_the_curve_did_not_see(sets: dict[str, list[Example]]) -> None:
    fits = held_out(sets, NAMES, SIGNS)
    shift = placed(sets, fits)
    curve, threshold, line = answer_curve(sets, fits, shift)
    assert curve.slope > 0
    assert 0.0 < threshold < 1.0
    assert "390 answers" in line
    assert float(line.rsplit(" ", 1)[1]) < 0.06, "calibration error above chance"
    model = joined_of(fit(sets, NAMES, SIGNS), shift, conflict_fit({"s": kinds()}), curve, threshold)
    rows = [e for name in ANSWERS for e in sets[name]]
    odds = np.array([min(model.support(dict(zip(NAMES, f, strict=True))) for f in e.features) for e in rows])
    assert balanced_accuracy(odds, np.array([e.label for e in rows]), 0.0) > 0.75


def kinds() -> list[Example]:
    """Statements that are contradicted or not found; the network's odds between the two tell which, with noise."""
    rng = np.random.default_rng(5)
    names = tuple(CONFLICT_SIGNS)
    found = []
    for k in range(200):
        features = rng.normal(0, 0.5, (1, len(names)))
        features[0, names.index("versus")] += 1.0 if k % 2 else -1.0
        found.append(Example(features, 0, str(k), bool(k % 2)))
    return found


def test_what_is_contradicted_is_told_by_the_network_s_odds() -> None:
    found = conflict_fit({"s": kinds()})
    weights = dict(zip(CONFLICT_SIGNS, found.weights, strict=True))
    assert weights["versus"] > 1.0
    assert min(weights.values()) >= 0.0
    assert math.isfinite(found.intercept)


def test_the_report_shows_words_network_and_both(sets: dict[str, list[Example]]) -> None:
    lines = report(sets, held_out(sets, NAMES, SIGNS)).splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(ANSWERS)
    for line in lines[1:]:
        words, network, joined = (float(value) for value in line.split()[2:])
        assert joined > network - 0.02
        assert joined > words
