"""`groundwatch score-file` as a user runs it, with the real embedding model."""

from __future__ import annotations

import gzip
import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from prometheus_client import CollectorRegistry

from consumer import cli
from consumer.case_file import decode_case
from consumer.commands import score_file as commands_score_file
from consumer.demo.knowledge import load_documents
from consumer.embedders import build_evaluator, cache_counter, evaluator_over
from consumer.record import ScoreRecord, decode_record
from consumer.score_file import BATCH_EVENTS
from consumer.settings import Settings
from metrics.evaluation import Evaluator
from metrics.event import Chunk, Event, encode_event
from metrics.metric import Embedder, Text, Vector
from metrics.outcome import Scored, Unscored
from metrics.similarity import build_metrics


class Remembering:
    """The real model, asked once for each text: these tests are about files, not about its speed."""

    def __init__(self, model: Embedder) -> None:
        self.model = model
        self.identity, self.dimension = model.identity, model.dimension
        self._known: dict[Text, Vector | Unscored] = {}

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
        new = [text for text in texts if text not in self._known]
        self._known.update(zip(new, self.model.embed(new), strict=True))
        return [self._known[text] for text in texts]


@pytest.fixture(scope="module")
def embedder() -> Remembering:
    return Remembering(build_evaluator(Settings(), None).embedder)


@pytest.fixture(autouse=True)
def model_loaded_once(embedder: Remembering, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command builds its evaluator from settings as ever, on a model that is loaded once for all these tests."""

    def evaluator(settings: Settings) -> Evaluator:
        try:
            registry = CollectorRegistry()
            return evaluator_over(settings, embedder, registry, cache_counter(registry))
        except ValueError as error:
            raise click.UsageError(f"--metrics: {error}") from None

    monkeypatch.setattr(commands_score_file, "_evaluator", evaluator)


def events(n: int) -> list[Event]:
    """Short events about different things."""
    documents = load_documents()
    return [
        Event(
            id=f"event-{i}",
            timestamp=1_760_000_000.0 + i,
            question=document.asked[0].question,
            contexts=(Chunk(document.text[:100]),),
            answer=document.asked[0].answer[:80],
            labels={"app": document.app},
        )
        for i, document in enumerate(itertools.islice(itertools.cycle(documents[::3]), n))
    ]


def write(path: Path, *rows: bytes) -> Path:
    path.write_bytes(b"".join(row + b"\n" for row in rows))
    return path


def run(*arguments: str | Path, environ: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli.group, ["score-file", *map(str, arguments)], env=environ)


def records(path: Path) -> list[ScoreRecord]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        return [decode_record(line) for line in file]


def test_order_is_kept_and_bad_lines_are_told_by_number_and_reason(tmp_path: Path) -> None:
    good = events(5)
    rows = [encode_event(e) for e in good]
    file = write(
        tmp_path / "e.jsonl", rows[0], b"not json", rows[1], b"", b'{"question": "q", "contexts": ["c"]}',
        *rows[2:], b"\xff\xfe{",
    )  # fmt: skip
    result = run(file, "--out", tmp_path / "s.jsonl", "--summary", tmp_path / "sum.json")
    assert result.exit_code == 0, result.output
    assert [r.id for r in records(tmp_path / "s.jsonl")] == [e.id for e in good]
    assert [r.source.offset for r in records(tmp_path / "s.jsonl")] == [1, 3, 6, 7, 8]
    assert {r.run for r in records(tmp_path / "s.jsonl")} == {"file"}
    told = [line.split(":")[0] for line in result.stderr.splitlines() if line.startswith("line ")]
    assert told == ["line 2", "line 5", "line 9"]
    assert "line 5: missing:answer" in result.stderr
    summary = json.loads((tmp_path / "sum.json").read_bytes())
    assert sum(summary["bad_lines"].values()) == 3
    assert (summary["events"], summary["scored"]) == (5, 5)
    assert "topic_similarity" in result.stdout


def test_scores_are_those_of_the_evaluator_whatever_the_neighbours(tmp_path: Path, embedder: Remembering) -> None:
    """Field case 34: alone, or among others of all lengths, a score moves by less than 1e-4."""
    some = events(12)
    some[5] = replace(some[5], contexts=(Chunk(" ".join(d.text for d in load_documents()[:5])),))
    file = write(tmp_path / "e.jsonl", *map(encode_event, some))
    assert run(file, "--out", tmp_path / "s", "--metrics", "topic_similarity").exit_code == 0
    found = {r.id: r.scores["topic_similarity"].value for r in records(tmp_path / "s")}
    alone = Evaluator(build_metrics(("topic_similarity",), "best"), embedder.model, sketches=False)
    for event in some:
        outcome = alone.evaluate([event])[0].outcomes["topic_similarity"]
        assert isinstance(outcome, Scored)
        assert found[event.id] == pytest.approx(outcome.value, abs=1e-4)


def test_gzip_in_and_out_and_the_same_bytes_again(tmp_path: Path) -> None:
    plain = write(tmp_path / "e.jsonl", *map(encode_event, events(3)))
    packed = tmp_path / "events.bin"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert run(plain, "--out", tmp_path / "a.jsonl").exit_code == 0
    assert run(packed, "--out", tmp_path / "b.jsonl.gz").exit_code == 0
    a, b = records(tmp_path / "a.jsonl"), records(tmp_path / "b.jsonl.gz")
    assert [(r.id, r.scores, r.content_hash) for r in a] == [(r.id, r.scores, r.content_hash) for r in b]


def test_stdout_holds_records_only(tmp_path: Path) -> None:
    file = write(tmp_path / "e.jsonl", *map(encode_event, events(2)))
    result = run(file, "--out", "-")
    assert result.exit_code == 0
    assert len([decode_record(line.encode()) for line in result.stdout.splitlines()]) == 2
    assert "95 % interval" in result.stderr


def test_text_is_redacted_before_it_is_scored(tmp_path: Path) -> None:
    row = json.dumps({"id": "ask-jo@example.org", "question": "q?", "contexts": ["c"], "answer": "Ask jo@example.org."})
    assert run(write(tmp_path / "e.jsonl", row.encode()), "--out", tmp_path / "s.jsonl").exit_code == 0
    assert b"example.org" not in (tmp_path / "s.jsonl").read_bytes()


def test_the_judges_own_traffic_is_ignored(tmp_path: Path) -> None:
    own = json.dumps({"user": "groundwatch-judge", "question": "q", "contexts": ["c"], "answer": "a"}).encode()
    file = write(tmp_path / "e.jsonl", own, encode_event(events(1)[0]))
    result = run(file, "--out", tmp_path / "s.jsonl")
    assert "1 ignored" in result.stdout
    assert len(records(tmp_path / "s.jsonl")) == 1


def test_a_floor_stops_an_automated_run_and_says_why(tmp_path: Path) -> None:
    file = write(tmp_path / "e.jsonl", *map(encode_event, events(10)))
    out = tmp_path / "s.jsonl"
    assert run(file, "--out", out, "--fail-under", "topic_similarity=0.5").exit_code == 0
    result = run(file, "--out", out, "--fail-under", "topic_similarity=0.5", "--fail-under",
                 "question_answer_similarity=0.999")  # fmt: skip
    assert result.exit_code == 3
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("gate:")]
    assert line.startswith("gate: --fail-under question_answer_similarity=0.999: the mean is 0.")
    assert len(records(out)) == 10


def test_a_floor_on_a_metric_without_any_value_says_no(tmp_path: Path) -> None:
    row = json.dumps({"id": "a", "question": "Where?", "contexts": [], "answer": "Here it is."}).encode()
    result = run(write(tmp_path / "e.jsonl", row), "--out", tmp_path / "s", "--fail-under", "topic_similarity=0.1")
    assert result.exit_code == 3
    assert "no event has a value (no_context 1)" in result.stderr


HIGH = {"GROUNDWATCH__THRESHOLDS__DEFAULT": '{"topic_similarity": 0.999}'}


def test_flagged_answers_are_counted_gated_and_kept_as_cases(tmp_path: Path) -> None:
    """What score-file writes of a flagged answer is what the stream would have put on the topic of case files."""
    good, bad = events(6), events(3)
    good = [replace(e, id=f"good-{i}", answer=e.contexts[0].text) for i, e in enumerate(good)]
    file = write(tmp_path / "e.jsonl", *(encode_event(e) for e in (*good, *bad)))
    cases, summary = tmp_path / "cases.jsonl.gz", tmp_path / "sum.json"
    options = ("--out", tmp_path / "s.jsonl", "--cases", cases, "--summary", summary)
    result = run(file, *options, "--max-flagged", "0.3", environ=HIGH)
    assert result.exit_code == 3, result.output
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("gate:")]
    assert line == "gate: --max-flagged 0.3: 3 of 9 answers are flagged, 0.3333 (topic_similarity_low 3)"
    assert "3 of 9 answers flagged (33.3%): topic_similarity_low 3; likely fault: unknown 3" in result.stdout
    told = json.loads(summary.read_bytes())
    assert told["flagged"] == {
        "answers": 3, "of": 9, "share": pytest.approx(1 / 3),
        "by_flag": {"topic_similarity_low": 3}, "by_fault": {"unknown": 3},
    }  # fmt: skip
    assert told["gates"] == [line.removeprefix("gate: ")]
    with gzip.open(cases, "rb") as lines_:
        found = [decode_case(raw) for raw in lines_]
    flagged = [r for r in records(tmp_path / "s.jsonl") if r.flags]
    assert [case.record for case in found] == flagged
    assert {case.why for case in found} == {("flagged",)}
    assert [case.answer for case in found] == [e.answer.strip() for e in bad if e.answer]
    assert all(case.contexts[0].similarity is not None for case in found)
    assert run(file, *options, "--max-flagged", "0.34", environ=HIGH).exit_code == 0


CHANGED = {
    "id": "changed", "question": "How many days of leave do I have?",
    "answer": "You have 31 days of paid leave a year.",
    "contexts": [{"id": "handbook#2", "text": "Staff are asked to plan. You have 26 days of paid leave a year."}],
}  # fmt: skip
KEPT = CHANGED | {"id": "kept", "answer": "You have 26 days of paid leave a year."}
REFUSED = CHANGED | {"id": "refused", "answer": "I'm sorry, the documents do not contain this information."}


def test_a_judge_says_which_statement_is_wrong(tmp_path: Path) -> None:
    """A changed number is contradicted, flagged, and its case file points at the passage that says otherwise."""
    file = write(tmp_path / "e.jsonl", *(json.dumps(row).encode() for row in (CHANGED, KEPT, REFUSED)))
    cases, summary = tmp_path / "c.jsonl", tmp_path / "sum.json"
    result = run(file, "--out", tmp_path / "s", "--cases", cases, "--summary", summary, "--fail-under",
                 "faithfulness=0.4")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "statements judged: 2 (1 supported, 1 contradicted, 0 not_found); answers that refuse: 1" in result.stdout
    by_id = {r.id: r for r in records(tmp_path / "s")}
    assert {i: r.scores["faithfulness"].value for i, r in by_id.items() if "faithfulness" in r.scores} == {
        "changed": 0.0, "kept": 1.0,
    }  # fmt: skip
    assert by_id["refused"].unscored["faithfulness"].reason == "no_claims"
    assert by_id["refused"].refusal
    (case,) = [decode_case(raw) for raw in cases.read_bytes().splitlines()]
    assert (case.record.id, case.record.flags) == ("changed", ("faithfulness_low",))
    (statement,) = case.statements
    assert (statement.label, statement.text) == ("contradicted", CHANGED["answer"])
    (evidence,) = statement.evidence
    assert evidence.chunk_id == "handbook#2"
    assert (case.contexts[0].text or "")[evidence.start : evidence.end] == evidence.quote
    assert "26 days" in evidence.quote
    told = json.loads(summary.read_bytes())
    assert told["statements"] == {"supported": 1, "contradicted": 1, "not_found": 0}
    assert told["refusals"] == 1
    assert next(iter(told["metrics"])) == "faithfulness"


def test_without_a_judge_faithfulness_is_not_configured(tmp_path: Path) -> None:
    file = write(tmp_path / "e.jsonl", *(json.dumps(row).encode() for row in (CHANGED, REFUSED)))
    result = run(file, "--out", tmp_path / "s", "--judge", "none")
    assert result.exit_code == 0, result.output
    reasons = {r.id: r.unscored["faithfulness"].reason for r in records(tmp_path / "s")}
    assert reasons == {"changed": "not_configured", "refused": "no_claims"}
    assert "answers that refuse: 1" in result.stdout


def test_where_nothing_can_be_flagged_the_gate_says_no(tmp_path: Path) -> None:
    file = write(tmp_path / "e.jsonl", *map(encode_event, events(2)))
    result = run(file, "--out", tmp_path / "s", "--metrics", "topic_similarity", "--max-flagged", "1")
    assert result.exit_code == 3
    assert "no answer has a score with a threshold" in result.stderr


def test_cases_never_overwrite_another_file(tmp_path: Path) -> None:
    file = write(tmp_path / "e.jsonl", *map(encode_event, events(1)))
    before = file.read_bytes()
    for path in (file, tmp_path / "s"):
        result = run(file, "--out", tmp_path / "s", "--cases", path)
        assert result.exit_code == 2
        assert "name another" in result.stderr
    assert run(file, "--out", "-", "--cases", "-").exit_code == 2
    assert run(file, "--out", tmp_path / "s", "--cases", tmp_path / "no" / "c").exit_code == 2
    assert file.read_bytes() == before


def test_against_an_earlier_run(tmp_path: Path) -> None:
    before = write(tmp_path / "old.jsonl", *map(encode_event, events(20)))
    old = tmp_path / "old.scores"
    assert run(before, "--out", old).exit_code == 0

    same = run(before, "--out", tmp_path / "same.scores", "--against", old)
    assert same.exit_code == 0, same.output
    assert "20 in both (0 with changed content)" in same.stdout

    swapped = write(tmp_path / "swapped.jsonl", *swapped_answers(before))
    worse = run(swapped, "--out", tmp_path / "worse.scores", "--against", old)
    assert worse.exit_code == 3, worse.output
    assert "gate: --against: topic_similarity fell by 0." in worse.stderr
    assert "20 pairs" in worse.stderr
    assert "worst regressions" in worse.stdout

    strangers = write(tmp_path / "x", old_with_other_ids(old))
    nothing = run(before, "--out", tmp_path / "n.scores", "--against", strangers)
    assert nothing.exit_code == 3
    assert "no id is in both files" in nothing.stderr


def swapped_answers(file: Path) -> list[bytes]:
    rows = [json.loads(line) for line in file.read_bytes().splitlines()]
    answers = [row["answer"] for row in rows]
    return [json.dumps(row | {"answer": answers[i - 3]}).encode() for i, row in enumerate(rows)]


def old_with_other_ids(scores: Path) -> bytes:
    return b"\n".join(
        json.dumps(json.loads(line) | {"id": f"other-{i}"}).encode()
        for i, line in enumerate(scores.read_bytes().splitlines())
    )


def test_scores_of_another_definition_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "e.jsonl", *map(encode_event, events(3)))
    old = tmp_path / "old.scores"
    assert run(file, "--out", old, environ={"GROUNDWATCH__SCORING__AGGREGATION": "mean"}).exit_code == 0
    result = run(file, "--out", tmp_path / "new.scores", "--against", old)
    assert result.exit_code == 2
    assert "scored under definition" in result.stderr
    assert not (tmp_path / "new.scores").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fail-under", "topic_similarity"], "METRIC=VALUE"),
        (["--fail-under", "faith=0.5"], "one of the scored metrics"),
        (["--fail-under", "topic_similarity=85"], "lies in [-1, 1]"),
        (["--fail-under", "faithfulness"], "METRIC=VALUE"),
        (["--fail-under", "faithfulness=abc"], "lies in [0, 1]"),
        (["--fail-under", "faithfulness=nan"], "lies in [0, 1]"),
        (["--metrics", "topic_similarity", "--fail-under", "faithfulness=0.5"], "one of the scored metrics"),
        (["--metrics", "topic_similarty"], "did you mean 'topic_similarity'"),
        (["--metrics", "context_recall", "--judge", "lexical"], "only an LLM judge scores that"),
        (["--metrics", ","], "at least one name"),
        (["--against", "absent.jsonl"], "does not exist"),
        (["--out", "no/such/folder/s.jsonl"], "there is no folder"),
    ],
)
def test_bad_arguments_are_one_clear_message_before_anything_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.setattr(commands_score_file, "_evaluator", lambda settings: pytest.fail("the model was loaded"))
    file = write(tmp_path / "e.jsonl", encode_event(events(1)[0]))
    result = run(file, "--out", tmp_path / "s.jsonl", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_neither_input_is_ever_overwritten(tmp_path: Path) -> None:
    file = write(tmp_path / "e.jsonl", encode_event(events(1)[0]))
    assert run(file, "--out", file).exit_code == 2
    old = tmp_path / "old.scores"
    assert run(file, "--out", old).exit_code == 0
    assert run(file, "--out", old, "--against", old).exit_code == 2


def test_nothing_to_score_is_a_failure(tmp_path: Path) -> None:
    for rows in ((), (b"x", b"y"), (b'{"id": "a", "contexts": [], "answer": ""}',)):
        result = run(write(tmp_path / "e.jsonl", *rows), "--out", tmp_path / "s.jsonl")
        assert result.exit_code == 1
        assert "no event could be scored" in result.stderr
        assert (tmp_path / "s.jsonl").exists() == (len(rows) == 1), "an empty file"


def test_a_damaged_file_leaves_no_output(tmp_path: Path) -> None:
    (one,) = events(1)
    packed = gzip.compress(b"".join(encode_event(replace(one, id=str(i))) + b"\n" for i in range(3000)))
    (tmp_path / "e.gz").write_bytes(packed[: len(packed) // 2])
    result = run(tmp_path / "e.gz", "--out", tmp_path / "s.jsonl")
    assert result.exit_code == 1
    assert "gzip data is damaged after line" in result.stderr
    assert {p.name for p in tmp_path.iterdir()} == {"e.gz"}


@pytest.mark.full
def test_a_killed_run_leaves_no_half_file(tmp_path: Path) -> None:
    out = tmp_path / "s.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "consumer", "score-file", "-", "--out", str(out)], stdin=subprocess.PIPE
    )
    assert process.stdin is not None
    (one,) = events(1)
    for i in range(BATCH_EVENTS + 1):
        process.stdin.write(encode_event(replace(one, id=str(i))) + b"\n")
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [p.name.startswith(".s.jsonl") for p in tmp_path.iterdir()] == [True]
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    assert not out.exists()
