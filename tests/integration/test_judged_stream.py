"""Faithfulness by the lexical judge through a whole scorer: what the stream writes is what score-file would write."""

from __future__ import annotations

from consumer.case_file import decode_case
from consumer.record import decode_record
from tests.integration.scorer_harness import (
    VECTOR_METRICS,
    HashEmbedder,
    event,
    produce,
    read_all,
    running_scorer,
    test_settings,
)
from tests.processes import wait_until


def test_a_changed_number_is_flagged_and_its_case_file_shows_the_statement(kafka: str) -> None:
    settings = test_settings(
        kafka, scoring={"metrics": ("faithfulness", *VECTOR_METRICS)}, cases={"audit_share": 0.0},
    )  # fmt: skip
    wrong = event(1, answer="Grade 1 has 29 days of leave a year.")
    refusal = event(2, answer="I'm sorry, the documents do not contain this information.")
    with running_scorer(settings, HashEmbedder()) as scorer:
        produce(kafka, settings.topics.events[0], [event(0), wrong, refusal])
        wait_until(lambda: scorer.ended()["scored"] == 3, 30, "three scored")
        assert scorer.value("unscored_total", metric="faithfulness", reason="no_claims") == 1
    records = {r.id: r for r in (decode_record(raw.value) for raw in read_all(kafka, settings.topics.scores))}
    assert records["e0"].scores["faithfulness"].value == 1.0
    assert records["e1"].scores["faithfulness"].value == 0.0
    assert records["e1"].statements == {"supported": 0, "contradicted": 1, "not_found": 0}
    assert records["e1"].versions.keys() <= {"groundwatch", "judge", "embedder"}
    assert records["e2"].refusal
    (case,) = [decode_case(raw.value) for raw in read_all(kafka, settings.topics.flagged)]
    assert case.record == records["e1"]
    assert (case.why, case.statements[0].label) == (("flagged",), "contradicted")
    assert "21 days" in case.statements[0].evidence[0].quote


def test_without_a_judge_the_other_scores_go_on(kafka: str) -> None:
    settings = test_settings(
        kafka, scoring={"metrics": ("faithfulness", *VECTOR_METRICS)}, judge={"kind": "none"},
        cases={"audit_share": 0.0},
    )  # fmt: skip
    with running_scorer(settings, HashEmbedder()) as scorer:
        produce(kafka, settings.topics.events[0], [event(0), event(1)])
        wait_until(lambda: scorer.ended()["scored"] == 2, 30, "two scored")
        assert scorer.value("unscored_total", metric="faithfulness", reason="not_configured") == 2
    assert read_all(kafka, settings.topics.flagged) == []
