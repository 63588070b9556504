"""`groundwatch calibrate` and `score-file --baseline` as a user runs them; the stream on a real Kafka flags alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from prometheus_client import CollectorRegistry

from consumer import cli
from consumer.commands import calibrate as commands_calibrate
from consumer.commands import score_file as commands_score_file
from consumer.demo.knowledge import load_documents
from consumer.embedders import cache_counter, evaluator_over
from consumer.record import ScoreRecord, decode_record
from consumer.settings import Settings
from metrics.baseline import decode_baseline
from metrics.evaluation import Evaluator
from metrics.flags import MARGIN
from metrics.metric import Text, Vector
from metrics.outcome import Unscored
from tests.integration.scorer_harness import HashEmbedder, produce, read_all, running_scorer, test_settings
from tests.processes import wait_until

SEGMENTS = {"app": ("hr-helpdesk", "it-helpdesk"), "lang": ("en", "zh")}


class WordEmbedder(HashEmbedder):
    """Texts that share words or characters are near one another: quick, and enough to tell fitting from not."""

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
        return [self._of(text.content) for text in texts]

    def _of(self, content: str) -> Vector:
        pieces = content.lower().split() if content.isascii() else list(content)
        total = np.sum([super(WordEmbedder, self)._vector(piece.strip(".,?")) for piece in pieces], axis=0)
        return np.asarray(total / np.linalg.norm(total), np.float32)


def words() -> WordEmbedder:
    return WordEmbedder(identity="words/1", dimension=64)


def rows() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(validated set, bad answers) of the demo's help desk: every question with its document, and with another one."""
    documents = load_documents()
    good, bad = [], []
    for at, document in enumerate(documents):
        other = documents[(at + len(documents) // 2 + 3) % len(documents)]
        for number, asked in enumerate(document.asked):
            row = {"id": f"{document.id}-{number}", "question": asked.question,
                   "labels": {"app": document.app, "lang": document.lang}}  # fmt: skip
            good.append(row | {"contexts": [document.text], "ideal answer": asked.answer})
            bad.append(row | {"id": f"bad-{document.id}-{number}", "contexts": [other.text], "answer": asked.answer})
    return good, bad


def write(file: Path, written: Sequence[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in written), encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def quick_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluator(settings: Settings) -> Evaluator:
        registry = CollectorRegistry()
        return evaluator_over(settings, words(), registry, cache_counter(registry))

    monkeypatch.setattr(commands_calibrate, "_evaluator", evaluator)
    monkeypatch.setattr(commands_score_file, "_evaluator", evaluator)


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    file = tmp_path / "groundwatch.toml"
    lines = [f"{key} = {json.dumps(values)}" for key, values in SEGMENTS.items()]
    file.write_text("[segments.allow]\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return file


def run(settings_file: Path, *arguments: object) -> Result:
    return CliRunner().invoke(cli.group, ["--settings", str(settings_file), *map(str, arguments)])


def test_a_validated_set_becomes_a_baseline_with_table_and_picture(tmp_path: Path, settings_file: Path) -> None:
    good, _ = rows()
    good[3] |= {"answer": "Something quite different."}  # the ideal answer is what was validated
    file = write(tmp_path / "good.jsonl", [*good, good[0], {"id": "x"}])
    out = tmp_path / "base.json"
    done = run(settings_file, "calibrate", file, "--out", out, "--min-segment", "70")
    assert done.exit_code == 0, done.output
    baseline = decode_baseline(out.read_bytes())
    whole = {d.metric: d for d in baseline.distributions if d.segment == ("all", "all")}
    assert set(whole) == {*Settings().scoring.metrics, "faithful_probability"}
    assert {d.n for d in whole.values()} == {160}
    assert {d.segment for d in baseline.distributions} >= {("hr-helpdesk", "all"), ("all", "zh"), ("it-helpdesk", "en")}
    for threshold in baseline.thresholds:
        assert threshold.operating.false_alarms <= 0.05
        assert threshold.segment != ("hr-helpdesk", "zh")  # too few answers for one of its own
    assert {s.part for s in baseline.sketches} == {"question", "context"}
    assert baseline.sketches[0].embedder == "words/1"
    assert whole["faithfulness"].mean > 0.95
    for said in ("160 answers (161 by their ideal answer", "1 rows were there before", "line 162: unrecognised",
                 "threshold", "false-alarms=0.05", "fewer than 70 good answers"):  # fmt: skip
        assert said in done.output, said
    picture = (tmp_path / "base.svg").read_text(encoding="utf-8")
    assert "<svg" in picture
    assert "topic_similarity, lang=zh" in picture


def test_bad_examples_give_a_trade_off_with_precision_and_recall(tmp_path: Path, settings_file: Path) -> None:
    good, bad = rows()
    files = write(tmp_path / "good.jsonl", good), "--bad", write(tmp_path / "bad.jsonl", bad)
    out = tmp_path / "base.json"
    picture = tmp_path / "picture.png"
    done = run(settings_file, "calibrate", *files, "--out", out, "--choose", "recall=0.9", "--plot", picture)
    assert done.exit_code == 0, done.output
    thresholds = {t.metric: t for t in decode_baseline(out.read_bytes()).thresholds if t.segment == ("all", "all")}
    topic = thresholds["topic_similarity"].operating
    assert topic.recall is not None
    assert 0.9 <= topic.recall < 0.95
    assert topic.precision is not None
    assert topic.precision > 0.5
    # The question and the answer are the same in both files, so their similarity cannot tell them apart.
    assert thresholds["question_answer_similarity"].method == "false_alarms"
    assert "question_answer_similarity does not tell these good answers from these bad ones" in done.output
    assert picture.read_bytes()[:4] == b"\x89PNG"
    rare = run(settings_file, "calibrate", *files, "--out", out, "--choose", "recall=0.9", "--bad-share", "0.01")
    assert rare.exit_code == 0
    rarely = {t.metric: t for t in decode_baseline(out.read_bytes()).thresholds if t.segment == ("all", "all")}
    assert (rarely["topic_similarity"].operating.precision or 1.0) < topic.precision - 0.3


def test_the_stream_and_score_file_flag_alike_by_a_baseline(tmp_path: Path, settings_file: Path, kafka: str) -> None:
    good, bad = rows()
    out, scores, traffic = tmp_path / "base.json", tmp_path / "scores.jsonl", tmp_path / "traffic.jsonl"
    calibrated = run(settings_file, "calibrate", write(tmp_path / "good.jsonl", good), "--out", out,
                     "--min-segment", "30")  # fmt: skip
    assert calibrated.exit_code == 0, calibrated.output
    events = [
        row | {"answer": row.get("answer", row.get("ideal answer")), "timestamp": "2026-11-30T10:00:00Z"}
        for row in (*good[::4], *bad[::4])
    ]
    scored = run(settings_file, "score-file", write(traffic, events), "--out", scores, "--baseline", out)
    assert scored.exit_code == 0, scored.output
    by_file = {r.id: r for r in map(decode_record, scores.read_bytes().splitlines())}
    settings = test_settings(
        kafka, scoring={"metrics": Settings().scoring.metrics, "sketch": False}, segments={"allow": SEGMENTS},
        baseline={"file": out}, scorer={"max_delay_seconds": 1e9},
    )  # fmt: skip
    with running_scorer(settings, words()) as scorer:
        produce(kafka, settings.topics.events[0], events)
        wait_until(lambda: scorer.ended()["scored"] == len(events), 60, "all scored")
    by_stream = {r.id: r for r in (decode_record(raw.value) for raw in read_all(kafka, settings.topics.scores))}

    def said(record: ScoreRecord) -> tuple[object, ...]:
        return record.flags, record.thresholds, record.fault, record.segment

    assert {i: said(r) for i, r in by_stream.items()} == {i: said(r) for i, r in by_file.items()}
    assert len({tuple(r.thresholds.items()) for r in by_file.values()}) > 1  # segments have their own
    for record in by_file.values():
        for metric, score in record.scores.items():
            low = score.value < record.thresholds[metric] - MARGIN
            assert (f"{metric}_low" in record.flags) is low
    flagged = {i for i, r in by_file.items() if r.flags}
    assert len([i for i in flagged if i.startswith("bad")]) > 30
    assert len([i for i in flagged if not i.startswith("bad")]) < 10


def test_a_baseline_of_another_definition_is_refused_before_anything_is_scored(
    tmp_path: Path, settings_file: Path
) -> None:
    good, _ = rows()
    out, scores = tmp_path / "base.json", tmp_path / "scores.jsonl"
    file = write(tmp_path / "good.jsonl", good[:30])
    assert run(settings_file, "calibrate", file, "--out", out).exit_code == 0
    changed = out.read_text(encoding="utf-8").replace(decode_baseline(out.read_bytes()).definitions["topic_similarity"],
                                                      "0badcafe")  # fmt: skip
    out.write_text(changed, encoding="utf-8")
    refused = run(settings_file, "score-file", file, "--out", scores, "--baseline", out)
    assert refused.exit_code == 2
    assert "is of other definitions: topic_similarity (0badcafe, here" in refused.output
    assert not scores.exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--choose", "recall=0.9"], "which needs examples of bad answers: --bad"),
        (["--choose", "best"], "give balanced, f1, precision=SHARE"),
        (["--bad-share", "0.1"], "which needs --bad"),
        (["--plot", "picture.gif"], "the name must end in .svg, .png, .pdf"),
        (["--false-alarms", "0"], "0.0<x<1.0"),
        (["--out", "nowhere/base.json"], "nowhere/base.json"),
    ],
)  # fmt: skip
def test_mistakes_are_told_without_a_traceback(
    arguments: list[str], says: str, tmp_path: Path, settings_file: Path
) -> None:
    file = write(tmp_path / "good.jsonl", rows()[0][:20])
    out = [] if "--out" in arguments else ["--out", str(tmp_path / "base.json")]
    done = run(settings_file, "calibrate", file, *out, *arguments)
    assert done.exit_code in (1, 2)
    assert says in done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)


def test_few_good_answers_give_a_distribution_but_no_threshold(tmp_path: Path, settings_file: Path) -> None:
    out = tmp_path / "base.json"
    done = run(settings_file, "calibrate", write(tmp_path / "good.jsonl", rows()[0][:18]), "--out", out)
    assert done.exit_code == 0
    assert decode_baseline(out.read_bytes()).thresholds == ()
    assert "18 good answers are too few for 0.05 false alarms: at least 19 are needed" in done.output
    nothing = run(settings_file, "calibrate", write(tmp_path / "empty.jsonl", []), "--out", tmp_path / "no.json")
    assert nothing.exit_code == 1
    assert "nothing to calibrate on" in nothing.output
    assert not (tmp_path / "no.json").exists()
