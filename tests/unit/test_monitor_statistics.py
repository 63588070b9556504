"""Drift and changes through the scorebook: records in, gauges and change events out."""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np
from prometheus_client.core import Metric

from consumer.record import ScoreRecord, encode_record
from consumer.scorebook import Scorebook
from consumer.settings import Settings
from metrics.baseline import Baseline, Sketches, distribution_of
from metrics.drift_exposition import change_families, drift_families
from metrics.sketch import encode_sketch
from tests.score_records import DEFINITIONS, score_record

ALL = ("all", "all")
BEGIN = 1_790_000_000.0
SETTINGS = Settings.model_validate({"segments": {"allow": {"app": ["helpdesk"], "lang": ["en"]}}})


def vector(rng: np.random.Generator, topic: int) -> str:
    made = 0.3 * rng.standard_normal(64) / 8
    made[topic] += 1.0
    return encode_sketch(np.asarray(made / np.linalg.norm(made), np.float32))


def records(number: int, every: float, mean: float, topic: int, begin: float = BEGIN) -> list[ScoreRecord]:
    rng, numbers = random.Random(31), np.random.default_rng(31)
    made = []
    for i in range(number):
        score = sum(rng.random() < mean for _ in range(4)) / 4
        sketch = {"question": vector(numbers, topic + i % 3), "context": vector(numbers, 10 + i % 3)}
        versions = {"embedder": "e5"}
        at = begin + i * every
        made.append(
            score_record(int(at), at, {"faithfulness": score}, probability=0.5, sketch=sketch, versions=versions)
        )
    return made


def baseline() -> Baseline:
    numbers = np.random.default_rng(32)
    questions = tuple(vector(numbers, i % 3) for i in range(200))
    contexts = tuple(vector(numbers, 10 + i % 3) for i in range(200))
    scores = (numbers.binomial(4, 0.94, 400) / 4).tolist()
    return Baseline(
        created=BEGIN,
        segment_keys=("app", "lang"),
        definitions=DEFINITIONS,
        versions={},
        distributions=(distribution_of("faithfulness", DEFINITIONS["faithfulness"], ALL, scores),),
        sketches=(Sketches("question", "e5", ALL, 200, questions), Sketches("context", "e5", ALL, 200, contexts)),
    )


def sample(families: Iterable[Metric], name: str, **labels: str) -> float | None:
    for family in families:
        for each in family.samples:
            if each.name == name and labels.items() <= each.labels.items():
                return each.value
    return None


def filled(made: list[ScoreRecord]) -> Scorebook:
    now = made[-1].event_time + 1.0
    book = Scorebook(SETTINGS, lambda: now, baseline(), clock=lambda: 0.0)
    for record in made:
        book.count(encode_record(record), record.event_time)
    book.attend()
    return book


def test_users_who_ask_about_something_new_are_told_from_answers_that_got_worse() -> None:
    for mean, topic, worse, new in ((0.94, 0, False, False), (0.6, 0, True, False), (0.94, 20, False, True)):
        families = list(drift_families(filled(records(400, 8.0, mean, topic)).drift(), ("app", "lang")))

        def above(metric: str, statistic: str, shown: list[Metric] = families) -> bool:
            labels = {"metric": metric, "statistic": statistic, "reference": "baseline", "window": "1h", "app": "all"}
            value = sample(shown, "groundwatch_drift", **labels)
            high = sample(shown, "groundwatch_drift_null_high", **labels)
            assert value is not None
            assert high is not None
            return value > high

        assert [above("faithfulness", name) for name in ("psi", "ks", "wasserstein")] == [worse] * 3
        assert above("question", "mmd") == new
        assert not above("context", "mmd")
        assert sample(families, "groundwatch_drift_samples", metric="faithfulness", window="1h") == 400.0
        assert sample(families, "groundwatch_drift_reference_samples", metric="faithfulness", window="1h") == 400.0


def test_no_drift_is_shown_of_a_handful_of_answers() -> None:
    assert filled(records(30, 8.0, 0.2, 0)).drift() == []


def test_a_fall_after_a_restart_is_counted_once_with_its_cases() -> None:
    past = records(1000, 60.0, 0.92, 0)
    fallen = records(200, 30.0, 0.55, 0, past[-1].event_time + 60.0)
    now = fallen[-1].event_time + 1.0
    book = Scorebook(SETTINGS, lambda: now, None, clock=lambda: 0.0)
    book.restore_recent()((encode_record(record), record.event_time) for record in past)
    book.restored()
    assert book.changes() == ()
    for place, record in enumerate(fallen):
        book.count(encode_record(record), record.event_time)
        if place % 10 == 9:
            book.attend()
    events = {change.segment: change for change in book.changes()}
    assert events.keys() == {("helpdesk", "en"), ALL}
    change = events["helpdesk", "en"]
    assert change.metric == "faithfulness"
    assert change.shift.size < -0.1
    assert abs(change.shift.start - fallen[0].event_time) < 1800
    assert {case.id for case in change.shift.cases} <= {record.id for record in fallen + past}
    families = list(change_families(*book.change_counts(), ("app", "lang")))
    labels = {"metric": "faithfulness", "app": "helpdesk", "lang": "en"}
    assert sample(families, "groundwatch_changes_total", **labels) == 1.0
    assert sample(families, "groundwatch_last_change_timestamp_seconds", **labels) == change.shift.found
    assert sample(families, "groundwatch_changes_total", metric="faithfulness", app="other", lang="other") == 0.0
    book.reset()
    assert len(book.changes()) == len(events)
    assert book.drift() == []
