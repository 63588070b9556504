"""The LLM judge on a real model: `make test-llm`, with an OpenAI-compatible server at GROUNDWATCH_TEST_LLM."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result
from prometheus_client import CollectorRegistry

from consumer import cli
from consumer.embedders import cache_counter, evaluator_over
from consumer.judging.checking import built_in_cases
from consumer.judging.remote_judge import RemoteJudge
from consumer.record import decode_record
from consumer.settings import Settings
from metrics.llm.adapting import fixed_parts
from metrics.llm.prompts import PLACES, load_book
from metrics.outcome import Scored
from tests.integration.judge_server import Answer, Call, judge_server
from tests.integration.scorer_harness import HashEmbedder, event

pytestmark = [pytest.mark.llm, pytest.mark.full]
URL = os.environ.get("GROUNDWATCH_TEST_LLM", "").rstrip("/")
SECONDS = "900"


@pytest.fixture(scope="module")
def model() -> str:
    """Its name, as the server lists it."""
    if not URL:
        pytest.skip("no real LLM: GROUNDWATCH_TEST_LLM=http://HOST:PORT/v1 is not set")
    listed = httpx.get(f"{URL}/models", timeout=30).json()["data"]
    return os.environ.get("GROUNDWATCH_TEST_LLM_MODEL") or str(listed[0]["id"])


@pytest.fixture
def environment(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for key, value in {
        "KIND": "llm", "URL": URL, "MODEL": model, "TIMEOUT_SECONDS": SECONDS,
        "PROMPT_PRICE": "0.5", "CONCURRENCY": "1",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"GROUNDWATCH__JUDGE__{key}", value)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.group, list(arguments), catch_exceptions=False)


def judge_of(model: str, **changes: object) -> RemoteJudge:
    judge = {"kind": "llm", "url": URL, "model": model, "timeout_seconds": float(SECONDS), "cache": False} | changes
    registry = CollectorRegistry()
    settings = Settings.model_validate({"judge": judge, "scoring": {"metrics": ("faithfulness", "answer_relevance")}})
    remote = evaluator_over(settings, HashEmbedder(), registry, cache_counter(registry)).remote
    assert isinstance(remote, RemoteJudge)
    return remote


def test_judge_check_says_what_the_judge_is_worth(environment: None) -> None:
    # What is tested is the way to the model and back: the small models that a test can serve are hardly fit to judge.
    result = run("judge-check", "--at-least", "0.3")
    print(result.output)
    assert result.exit_code == 0, result.output
    assert "unscored" not in result.output, "every reply of a real model must be readable"
    agreement = re.search(r"agreement +(\d+) of 16", result.output)
    assert agreement is not None
    assert re.search(r"cost +[0-9.,e+]+ per 1,000 events at sampling.rate 1", result.output)


def test_the_same_event_gets_the_same_score(model: str) -> None:
    """Field case 30."""
    judge = judge_of(model)
    case = built_in_cases()[0]
    wanted = frozenset({"faithfulness"})
    results = [judge.judge(case.event, wanted) for _ in range(5)]
    verdicts = [result.judged.verdicts for result in results if result.judged is not None]
    assert all(isinstance(result.outcomes["faithfulness"], Scored) for result in results)
    assert verdicts == [verdicts[0]] * 5


def relayed(call: Call) -> Answer:
    """What the real model says to this request."""
    said = httpx.post(f"{URL}/chat/completions", json=dict(call.body), timeout=float(SECONDS)).json()
    choice, usage = said["choices"][0], said["usage"]
    return Answer(
        choice["message"]["content"],
        finish=choice["finish_reason"],
        usage=(usage["prompt_tokens"], usage["completion_tokens"]),
    )


def test_prompts_for_another_language_are_made_and_used(
    environment: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of a small model may be poor; what programs read is all there."""
    folder = tmp_path / "p"
    result = run("prompts", "adapt", "--to", "de", "--out", str(folder))
    print(result.output)
    assert result.exit_code == 0, result.output
    found = load_book(folder).sets["de"]
    for prompt in PLACES:
        assert fixed_parts(found.prompts[prompt].user) == fixed_parts(load_book().sets["en"].prompts[prompt].user)
    monkeypatch.setenv("GROUNDWATCH__JUDGE__PROMPTS_DIR", str(folder))
    file, out = tmp_path / "e.jsonl", tmp_path / "s.jsonl"
    file.write_text(
        json.dumps(
            event(
                1,
                question="Wann schließt das Schwimmbad am Sonntag?",
                answer="Am Sonntag schließt das Schwimmbad um 18 Uhr.",
                contexts=[{"text": "Das Schwimmbad ist werktags bis 21 Uhr geöffnet, am Sonntag bis 18 Uhr."}],
                labels={"lang": "de"},
            )
        )
    )
    with judge_server(relayed) as relay:
        monkeypatch.setenv("GROUNDWATCH__JUDGE__URL", relay.url)
        result = run("score-file", str(file), "--out", str(out), "--judge", "llm", "--metrics", "faithfulness")
    assert result.exit_code == 0, result.output
    record = decode_record(out.read_bytes())
    assert "faithfulness" in record.scores, record.unscored
    assert f"de/1@{found.digest}" in record.versions["prompts"]
    assert {call.body["messages"][0]["content"] for call in relay.calls} == {found.prompts["verdict"].system.strip()}
