"""Beneath `score-file`: lines are read and scored one by one, and what failed is told by answer length."""

from __future__ import annotations

import io
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from consumer.decode import Decoder
from consumer.record import Position
from consumer.record_building import build_record
from consumer.redaction import Redactor
from consumer.results import Results
from consumer.score_file import BATCH_EVENTS, Bad, Done, FileUnusable, Line, Scoring, lines, opened, results
from consumer.score_summary import Summary
from consumer.segments import Segmenter
from consumer.settings import Settings
from consumer.thresholds import thresholds_in_force
from metrics.evaluation import Evaluation, Evaluator
from metrics.event import Chunk, Event
from metrics.outcome import Reason, Scored, Unscored
from metrics.similarity import build_metrics
from tests.integration.scorer_harness import HashEmbedder, event
from tests.services import SHARED

SOURCE = Position("f", 0, 1)
LABELLED = SHARED / "data" / "labelled"


def scoring() -> Scoring:
    settings = Settings()
    evaluator = Evaluator(build_metrics(("topic_similarity",), "best"), HashEmbedder(), sketches=False)
    definitions = evaluator.definitions
    thresholds = thresholds_in_force(settings, definitions)
    return Scoring(
        Decoder(settings.decode), Redactor(settings.redaction), Segmenter(settings.segments), evaluator,
        Results(settings, thresholds, definitions, {}, lambda: 1_760_000_001.0), "f", 1_760_000_000.0,
    )  # fmt: skip


def test_an_endless_file_is_scored_as_it_is_read() -> None:
    row = orjson.dumps(event(1))
    read = 0

    def endless() -> Iterator[Line]:
        nonlocal read
        for read in itertools.count(1):
            yield Line(read, row, 0)

    first = list(itertools.islice(results(endless(), scoring()), 2 * BATCH_EVENTS))
    assert [line.number for line, _ in first] == list(range(1, 2 * BATCH_EVENTS + 1))
    assert read <= 2 * BATCH_EVENTS
    assert all(isinstance(result, Done) for _, result in first)


def test_a_line_beyond_the_limit_is_refused_without_being_held() -> None:
    text = b"a" * 50 + b"\n" + b"b" * 500_000 + b"\nlast"
    found = list(lines("f", io.BytesIO(text), lambda: 0, max_bytes=100))
    assert [(line.number, line.value) for line in found] == [(1, b"a" * 50), (2, None), (3, b"last")]
    ((_, bad),) = results(found[1:2], scoring())
    assert isinstance(bad, Bad)
    assert (bad.number, bad.reason) == (2, "too_large")


def test_an_absent_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FileUnusable, match="No such file"), opened(tmp_path / "absent"):
        pass


def test_coverage_by_answer_length_shows_a_mean_of_the_short_and_easy() -> None:
    """Field case 28: what fails is counted by reason, never averaged as 0, and shown where it fails."""
    summary = Summary({"m": "aaaaaaaa"}, {"m": (0.0, 1.0)})
    rng = random.Random(1)
    answered = Event("e", 1_760_000_000.0, "How long?", (Chunk("26 days."),), "26 days.")
    for i in range(1000):
        length = rng.choice((50, 200, 2000))
        failed = length == 2000 and rng.random() < 0.6
        outcome = Unscored(Reason.JUDGE_TIMEOUT) if failed else Scored(0.8)
        if i % 10 == 0:
            outcome = Unscored(Reason.NO_CLAIMS)
        record = build_record(
            answered, Evaluation({"m": outcome}, {}), probability=1.0, sampled_by="rate", source=SOURCE, segment={},
            labels={}, definitions={"m": "aaaaaaaa"}, versions={}, run="file", scored_time=1.0, thresholds={},
        )  # fmt: skip
        summary.add(record, length)
    (m,) = summary.metrics()
    assert m.mean == pytest.approx(0.8)
    assert m.unscored["no_claims"] == 100
    assert m.scored + m.unscored["judge_timeout"] == 900
    short, middle, _, long = m.by_length
    assert (short.share, middle.share) == (1.0, 1.0)
    assert long.share == pytest.approx(0.4, abs=0.1)
    assert m.coverage.share == pytest.approx(m.scored / 900)


@pytest.mark.skipif(not LABELLED.exists(), reason="../shared/data/labelled is absent")
@pytest.mark.parametrize(
    "name",
    ["attributionbench", "lfqa_sentences", "lfqa_responses", "wice_claims", "begin_v2", "faithdial_audit", "q2_wow",
     "qags", "gofigure", "falke_rank19", "summeval", "rgb_pairs", "ragtruth_qa_part", "mtrag_part", "expertqa_part",
     "summedits_part", "halueval_qa", "uhgeval_zh", "zh_qa_positives"],
)  # fmt: skip
def test_labelled_sets_are_readable_as_they_are(name: str) -> None:
    decoder = Decoder(Settings().decode)
    with opened(LABELLED / f"{name}.jsonl.gz") as (stream, consumed):
        rows = list(itertools.islice(lines(name, stream, consumed, 8_000_000), 200))
    for line in rows:
        assert line.value is not None
        raw: dict[str, Any] = json.loads(line.value)
        found = decoder.decode(line.value, fallback_id=f"line-{line.number}", broker_time=1.7e9).event
        assert found.id == raw["id"]
        assert found.answer == raw["answer"].strip()
        assert {chunk.text for chunk in found.contexts} == {text.strip() for text in raw["contexts"] if text.strip()}
