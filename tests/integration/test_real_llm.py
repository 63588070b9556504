"""The LLM judge on a real model: `make test-llm`, with an OpenAI-compatible server at GROUNDWATCH_TEST_LLM."""

from __future__ import annotations

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
from consumer.settings import Settings
from metrics.llm.prompts import load_book
from metrics.outcome import Scored
from tests.integration.scorer_harness import HashEmbedder

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


def test_prompts_for_another_language(environment: None, tmp_path: Path) -> None:
    result = run("prompts", "adapt", "--to", "de", "--out", str(tmp_path / "p"))
    print(result.output)
    if result.exit_code:
        # A small model may lose a place; then nothing is saved, and the message says what is missing.
        assert not (tmp_path / "p" / "de.toml").exists()
        assert "Traceback" not in result.output
        return
    assert load_book(tmp_path / "p").sets["de"].language == "de"
    assert 'language = "de"' in run("prompts", "show", "de").output or result.exit_code == 0
