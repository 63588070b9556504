"""The LLM judge in a whole scorer: a real Kafka, a real HTTP judge that works, hangs, is busy or too dear."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import orjson
import pytest

from consumer.case_file import decode_case
from consumer.record import ScoreRecord
from tests.integration.judge_server import (
    MODEL,
    Answer,
    Call,
    busy,
    hanging,
    honest,
    judge_server,
    refusing,
    reworded,
)
from tests.integration.llm_stream_harness import ends, judged_stream, reasons, records_of, send
from tests.integration.scorer_harness import (
    VECTOR_METRICS,
    committed,
    event,
    produce,
    read_all,
)
from tests.processes import wait_until


def test_a_wrong_number_is_flagged_by_the_judge(kafka: str) -> None:
    metrics = ("faithfulness", "context_precision", "context_recall", "context_relevance", *VECTOR_METRICS)
    with judge_server() as server, judged_stream(kafka, server, scoring={"metrics": metrics}) as scorer:
        settings = scorer.settings
        wrong = event(1, answer="Grade 1 has 29 days of leave a year.", reference="It is 21 days.")
        empty = event(2, contexts=[])
        refusal = event(3, answer="I'm sorry, the documents do not contain this information.")
        produce(kafka, settings.topics.events[0], [event(0), wrong, empty, refusal])
        ends(scorer, 4)
        assert scorer.value("judge_requests_total", outcome="ok") == len(server.calls) > 3
        assert scorer.value("judge_tokens_total", kind="prompt") == 100 * len(server.calls)
        assert scorer.value("judge_inflight_answers") == 0
    records = records_of(settings)
    assert records["e0"].scores["faithfulness"].value == 1.0
    assert records["e1"].scores["faithfulness"].value == 0.0
    assert records["e1"].statements == {"supported": 0, "contradicted": 1, "not_found": 0}
    assert {"context_precision", "context_recall", "context_relevance"} <= records["e1"].scores.keys()
    assert records["e1"].cost["judge_calls"] >= 1
    assert records["e0"].unscored["context_recall"].reason == "no_reference"
    assert records["e2"].unscored["faithfulness"].reason == "no_context"
    assert records["e3"].refusal
    (case,) = [decode_case(raw.value) for raw in read_all(kafka, settings.topics.flagged)]
    assert case.record == records["e1"]
    assert case.statements[0].label == "contradicted"


@pytest.mark.full
def test_a_judge_that_hangs_holds_up_nothing(kafka: str) -> None:
    """Field case 28, invariant 8: every event ends, with other scores, and none waits for more than one timeout."""
    judge = {"timeout_seconds": 8.0, "concurrency": 4, "waiting": 4}
    with judge_server(hanging) as server, judged_stream(kafka, server, judge=judge) as scorer:
        settings = scorer.settings
        send(scorer, range(400))
        ends(scorer, 392, 60)
        assert scorer.value("judge_requests_total", outcome="timeout") == 0, "those without room must not wait"
        ends(scorer, 400, 60)
        assert scorer.value("judge_circuit_open") == 1
        send(scorer, range(400, 800))
        ends(scorer, 800, 60)
        wait_until(lambda: committed(settings, settings.topics.events[0]) == 800, 60, "all committed")
        assert scorer.ended()["scored"] == 800
    found = reasons(settings)
    assert found.keys() == {"judge_timeout", "judge_busy"}
    assert 1 <= found["judge_timeout"] <= 8


def test_an_unhappy_judge(kafka: str) -> None:
    """Field case 28: 30 % 429, 10 % hang, 5 % a deterministic error; every event ends with a score or a reason."""

    def script(call: Call) -> Answer:
        place = call.number % 20
        if place in (1, 4, 7, 11, 14, 17):
            return busy("0")(call)
        if place in (5, 15):
            return hanging(call)
        return refusing(400, "boom")(call) if place == 9 else honest(call)

    judge = {"timeout_seconds": 1.5, "concurrency": 8, "waiting": 40, "structured": "json_schema"}
    with judge_server(script) as server, judged_stream(kafka, server, judge=judge) as scorer:
        settings = scorer.settings
        for start in range(0, 120, 20):
            send(scorer, range(start, start + 20))
            ends(scorer, start + 10)
        ends(scorer, 120)
        outcomes = {o: scorer.value("judge_requests_total", outcome=o) for o in ("ok", "busy", "timeout", "refused")}
    found = reasons(settings)
    assert sum(found.values()) == 120
    assert found.keys() <= {"scored", "judge_timeout", "judge_busy", "judge_error"}
    assert found["scored"] > 70
    # What refuses is asked once for each event that meets it, never again.
    assert found.get("judge_error", 0) == outcomes["refused"]


def test_the_judge_comes_back(kafka: str) -> None:
    judge = {"timeout_seconds": 0.5, "concurrency": 3, "waiting": 0}
    with judge_server(hanging) as server, judged_stream(kafka, server, judge=judge) as scorer:
        send(scorer, range(30))
        ends(scorer, 30)
        wait_until(lambda: scorer.value("judge_circuit_open") == 1, 5, "open")
        server.script = honest
        wait_until(lambda: scorer.value("judge_circuit_open") == 0, 10, "closed by a probe")
        send(scorer, range(30, 31))
        ends(scorer, 31)
        settings = scorer.settings
    assert records_of(settings)["e30"].scores["faithfulness"].value == 1.0


def test_a_budget_thins_and_never_fails(kafka: str) -> None:
    """Budget: a lower rate by the hash that sampled, its probability in the record, other metrics untouched."""
    judge = {"calls_per_minute": 60, "concurrency": 4, "waiting": 100}
    with judge_server() as server, judged_stream(kafka, server, judge=judge) as scorer:
        settings = scorer.settings
        begun = time.monotonic()
        for start in range(0, 600, 20):
            send(scorer, range(start, start + 20))
            time.sleep(0.2)
        ends(scorer, 600)
        assert 0 < scorer.value("judge_share") < 0.9
        seconds = time.monotonic() - begun
    records = records_of(settings).values()
    found = reasons(settings)
    assert found.keys() == {"scored", "budget"}
    # A full bucket, and what flows into it.
    assert len(server.calls) == found["scored"] <= 60 + seconds
    judged = [r.scores["faithfulness"].probability for r in records if "faithfulness" in r.scores]
    assert min(judged) < 0.9
    assert {r.probability for r in records} == {1.0}
    assert {r.scores["topic_similarity"].probability for r in records} == {1.0}


def test_two_runs_are_identical(kafka: str) -> None:
    """Field case 30: cache off, temperature 0, one slot: the same scores, reasons, statements and fault."""
    events = [event(n, timestamp=1_760_000_000.0 + n, reference=f"It is {20 + n % 9} days.") for n in range(20)]
    events += [event(n, answer=f"Grade {n} has {n} days. It also has {n + 100} desks.") for n in range(20, 30)]
    metrics = (
        "faithfulness", "answer_relevance", "context_precision", "context_recall", "context_relevance",
        "topic_similarity", "question_context_similarity",
    )  # fmt: skip
    runs = []
    for _ in range(2):
        judge = {"concurrency": 1, "waiting": 100}
        thresholds = {"default": {"faithfulness": 0.75, "question_context_similarity": -1.0}}
        with (
            judge_server() as server,
            judged_stream(kafka, server, judge=judge, scoring={"metrics": metrics}, thresholds=thresholds) as scorer,
        ):
            settings = scorer.settings
            produce(kafka, settings.topics.events[0], events)
            ends(scorer, len(events))
        prompts = sorted(orjson.dumps(call.body) for call in server.calls)
        runs.append(({i: told(r) for i, r in records_of(settings).items()}, prompts))
    assert runs[0] == runs[1]
    assert any(fault == "generation" for _, _, _, fault, _ in runs[0][0].values())
    assert {name for scores, *_ in runs[0][0].values() for name in scores} == set(metrics)


def told(record: ScoreRecord) -> tuple[Any, ...]:
    scores = {name: score.value for name, score in record.scores.items()}
    unscored = {name: missing.reason for name, missing in record.unscored.items()}
    return scores, unscored, record.statements, record.fault, record.definitions


def test_a_replay_is_answered_from_redis(kafka: str, redis_url: str) -> None:
    """Field case 30: judged once, whichever worker reads it, though the judge has changed its mind meanwhile."""
    runs = []
    with judge_server() as server:
        for script in (honest, reworded(lambda text: text.replace('"supported"', '"contradicted"'))):
            server.script = script
            with judged_stream(kafka, server, judge={"cache": True}, redis={"cache_url": redis_url}) as scorer:
                settings = scorer.settings
                send(scorer, range(10), timestamp=1_760_000_000.0)
                ends(scorer, 10)
                runs.append(
                    (len(server.calls), scorer.value("cache_requests_total", cache="verdict_redis", result="hit"))
                )
            assert {r.scores["faithfulness"].value for r in records_of(settings).values()} == {1.0}
    assert runs == [(10, 0), (10, 10)]


def test_the_generator_as_its_own_judge_is_told_once(kafka: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), judge_server() as server, judged_stream(kafka, server) as scorer:
        send(scorer, range(5), labels={"app": "hr", "model": f"vendor/{MODEL.upper()}"})
        ends(scorer, 5)
    assert sum("judged by the model that wrote them" in message for message in caplog.messages) == 1


def test_stopping_does_not_wait_for_a_judge_that_hangs(kafka: str) -> None:
    judge = {"timeout_seconds": 60, "concurrency": 2, "waiting": 2}
    with (
        judge_server(hanging) as server,
        judged_stream(kafka, server, judge=judge, scorer={"shutdown_seconds": 4.0}) as scorer,
    ):
        settings = scorer.settings
        send(scorer, range(20))
        ends(scorer, 16)
        begun = time.monotonic()
        scorer.stop()
        assert time.monotonic() - begun < 6
    # What was at the judge is not committed: it is read again.
    assert committed(settings, settings.topics.events[0]) < 4
    assert not any(t.name.startswith("judge-") and t.is_alive() and not t.daemon for t in threading.enumerate())
