"""`judge-check`, `prompts`, `doctor` and `score-file --judge llm`, as a user runs them, on a judge that is scripted."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from prometheus_client import CollectorRegistry

from consumer import cli
from consumer.commands import judge_check, score_file
from consumer.doctor import check_judge
from consumer.embedders import cache_counter, evaluator_over
from consumer.judging.checking import Expected, built_in_cases
from consumer.judging.remote_judge import RemoteJudge
from consumer.record import decode_record
from consumer.settings import Settings
from metrics.evaluation import Evaluator
from metrics.llm.adapting import TRIES
from metrics.llm.prompts import load_book
from tests.integration.judge_server import (
    MODEL,
    Answer,
    Call,
    JudgeServer,
    in_form,
    judge_server,
    refusing,
    reworded,
    said,
)
from tests.integration.scorer_harness import HashEmbedder, event

CASES = built_in_cases()


@pytest.fixture(autouse=True)
def without_a_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The commands build their evaluator from the settings, over an embedder that needs no model."""

    def evaluator(settings: Settings) -> Evaluator:
        registry = CollectorRegistry()
        return evaluator_over(settings, HashEmbedder(), registry, cache_counter(registry))

    def judge(settings: Settings) -> RemoteJudge:
        remote = evaluator(settings).remote
        assert isinstance(remote, RemoteJudge)
        return remote

    monkeypatch.setattr(score_file, "_evaluator", evaluator)
    monkeypatch.setattr(judge_check, "_judge", judge)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    with judge_server() as server:
        for key, value in {"KIND": "llm", "URL": server.url, "MODEL": MODEL, "TIMEOUT_SECONDS": "3"}.items():
            monkeypatch.setenv(f"GROUNDWATCH__JUDGE__{key}", value)
        yield server


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.group, list(arguments), catch_exceptions=False)


def knowing(call: Call) -> Answer:
    """A judge that knows the built-in cases: told by the passage, whose text stands in the prompt."""
    for case in CASES:
        if case.event.contexts[0].text[:15] in call.prompt:
            verdict = {"reason": "known", "verdict": case.expected.value, "quote": ""}
            return Answer(json.dumps(in_form(verdict, call.prompt)))
    return Answer(json.dumps(said(call.prompt)))


def test_a_fit_judge(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.script = knowing
    monkeypatch.setenv("GROUNDWATCH__JUDGE__PROMPT_PRICE", "0.5")
    monkeypatch.setenv("GROUNDWATCH__JUDGE__COMPLETION_PRICE", "1.5")
    monkeypatch.setenv("GROUNDWATCH__SAMPLING__RATE", "0.1")
    result = run("judge-check")
    assert result.exit_code == 0, result.output
    assert "agreement   16 of 16 (100%" in result.output
    assert "injection 3/3" in result.output
    # Two refusals cost no call; each other call is 100 prompt and 20 completion tokens.
    each = len(server.calls) / 16
    assert 14 / 16 <= each < 2
    assert f"{120 * each:,.0f} an answer ({100 * each:,.0f} prompt, {20 * each:,.0f} completion)" in result.output
    price = each * (0.100 * 0.5 + 0.020 * 1.5)
    assert f"cost        {1000 * 0.1 * price:,.4g} per 1,000 events at sampling.rate 0.1" in result.output


def test_a_judge_that_agrees_with_everything_is_not_fit(server: JudgeServer) -> None:
    server.script = reworded(
        lambda text: '{"reason": "", "verdict": "supported", "quote": "", "problem": "none", "found": true}'
    )
    result = run("judge-check")
    assert result.exit_code == 3
    assert "not fit: it agrees on 31%" in result.output
    assert "✗ en-number" in result.output


def test_a_judge_that_cannot_be_asked(server: JudgeServer) -> None:
    server.script = refusing(401, "no such key")
    result = run("judge-check")
    assert result.exit_code == 1
    assert "the judge gives no reply" in result.output
    assert "Traceback" not in result.output


def test_a_judge_that_nobody_asked_is_not_called_fit(server: JudgeServer, tmp_path: Path) -> None:
    server.script = refusing(500, "out of memory")
    asked = {"question": "How long?", "contexts": ["It opens at 8."]}
    refusal = asked | {"answer": "I don't know.", "expected": "no_claims"}
    claim = asked | {"answer": "It opens at 8.", "expected": "supported"}
    for cases, told in (([refusal], "no case needed the judge"), ([refusal, claim], "no reply that can be read")):
        file = tmp_path / "cases.jsonl"
        file.write_text("\n".join(json.dumps(case) for case in cases), encoding="utf-8")
        result = run("judge-check", "--labelled", str(file))
        assert (result.exit_code, told in result.output) == (1, True), result.output


def test_labelled_cases_of_ones_own(server: JudgeServer, tmp_path: Path) -> None:
    lines = [
        event(0) | {"faithful": True},
        event(1, answer="Grade 1 has 99 days of leave.") | {"faithful": False},
        event(2) | {"expected": "contradicted"},
    ]
    file = tmp_path / "mine.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines))
    result = run("judge-check", "--labelled", str(file), "--at-least", "0.6")
    assert result.exit_code == 0, result.output
    assert "agreement   2 of 3" in result.output
    assert "balanced accuracy of supported against not supported 75%" in result.output
    file.write_text(json.dumps(event(0)))
    result = run("judge-check", "--labelled", str(file))
    assert result.exit_code == 2
    assert 'line 1: needs "expected"' in result.output


def test_without_an_llm_judge_the_command_says_so() -> None:
    result = run("judge-check")
    assert result.exit_code == 2
    assert "set judge.kind = 'llm'" in result.output


def test_the_built_in_cases_cover_what_they_promise() -> None:
    languages = {case.event.id[:2] for case in CASES}
    assert languages == {"en", "zh"}
    for language in languages:
        kinds = {case.kind for case in CASES if case.event.id.startswith(language)}
        assert kinds == {"supported", "number", "negation", "contradiction", "not_found", "refusal", "injection"}
    assert {case.expected for case in CASES} == set(Expected) - {Expected.UNSUPPORTED}


def test_prompts_are_shown() -> None:
    listed = run("prompts", "show")
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.output.splitlines()[:2]] == ["en", "zh"]
    assert "{passages}" in run("prompts", "show", "zh").output
    missing = run("prompts", "show", "xx")
    assert missing.exit_code == 1
    assert "groundwatch prompts adapt --to xx" in missing.output


def scored_in_german(server: JudgeServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adapted prompts go out for events of their language, and their version is in the record."""
    monkeypatch.setenv("GROUNDWATCH__JUDGE__PROMPTS_DIR", str(folder))
    supported = {"reason": "steht da", "verdict": "supported", "quote": ""}
    server.script = lambda call: Answer(json.dumps(in_form(supported, call.prompt)))
    server.calls.clear()
    file, out = folder / "e.jsonl", folder / "s.jsonl"
    events = [event(n, labels={"lang": language}) for n, language in enumerate(["de", "en"])]
    file.write_text("\n".join(json.dumps(one) for one in events))
    result = run("score-file", str(file), "--out", str(out), "--judge", "llm", "--metrics", "faithfulness")
    assert result.exit_code == 0, result.output
    records = [decode_record(line) for line in out.read_bytes().splitlines()]
    assert [record.scores["faithfulness"].value for record in records] == [1.0, 1.0]
    german = load_book(folder).sets["de"]
    assert all(f"de/1@{german.digest}" in record.versions["prompts"] for record in records)
    sent = {word for call in server.calls for word in re.findall(r"^(Claim|Claimung): ", call.prompt, re.MULTILINE)}
    assert sent == {"Claim", "Claimung"}
    monkeypatch.delenv("GROUNDWATCH__JUDGE__PROMPTS_DIR")


def test_prompts_are_adapted_by_the_judge(server: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def translating(call: Call) -> Answer:
        """Loses every place; all words become German ones."""
        text = call.prompt.rpartition("<text>")[2].partition("</text>")[0]
        asked.append(text)
        words = re.findall(r"[A-Za-z]+", re.sub(r"\{[a-z]+\}", "", text))
        return Answer(json.dumps({"text": " ".join(w if w == "JSON" else f"{w}ung" for w in words)}))

    server.script = translating
    folder = tmp_path / "own"
    result = run("prompts", "adapt", "--to", "de", "--out", str(folder))
    assert result.exit_code == 0, result.output
    found = load_book(folder).sets["de"]
    assert found.prompts["verdict"].system.startswith("Youung checkung")
    assert "Claimung: {claim}\n" in found.prompts["verdict"].user
    assert "[verdict] user" in result.output
    assert len(asked) <= TRIES * len(set(asked))
    scored_in_german(server, folder, monkeypatch)
    again = run("prompts", "adapt", "--to", "de", "--out", str(folder))
    assert again.exit_code == 1
    assert "--force" in again.output
    server.script = reworded(lambda text: '{"text": "nichts"}')
    lost = run("prompts", "adapt", "--to", "fr", "--out", str(folder))
    assert lost.exit_code == 1
    assert "Traceback" not in lost.output
    assert not (folder / "fr.toml").exists()
    nowhere = run("prompts", "adapt", "--to", "fr")
    assert nowhere.exit_code == 2


@contextmanager
def html_server() -> Iterator[str]:
    """A web site where an endpoint should be."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>Welcome</html>")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def test_doctor_looks_at_the_judge(server: JudgeServer) -> None:
    def level(**judge: object) -> tuple[str, str]:
        (found,) = check_judge(Settings.model_validate({"judge": server.settings(**judge)}))
        return found.level, found.found

    assert level()[0] == "ok"
    assert level(model="another")[0] == "warn"
    assert "does not list another, but scripted-judge" in level(model="another")[1]
    assert level(url="http://127.0.0.1:9/v1")[0] == "fail"
    with html_server() as url:
        assert level(url=url) == ("warn", f"{url}/models lists no models: is this an OpenAI-compatible endpoint?")
    assert level(api_key_file="/no/such/file")[0] == "fail"
    (local,) = check_judge(Settings())
    assert (local.level, local.found) == ("ok", "lexical, in the worker itself")
    (beyond,) = check_judge(Settings.model_validate({"scoring": {"metrics": ["context_relevance"]}}))
    assert beyond.level == "fail"


def test_a_file_is_scored_by_the_same_judge(server: JudgeServer, tmp_path: Path) -> None:
    """Field case 28: what fails is shown by the length of the answer, for it is seldom the short ones."""

    def script(call: Call) -> Answer:
        # Long prompts time out in the field; here they are refused.
        return refusing(500, "out of memory")(call) if "desks" in call.prompt else Answer(json.dumps(said(call.prompt)))

    server.script = script
    long = "Grade {0} has {0} desks in each of its offices. " * 3
    lines = [event(n) for n in range(20)] + [event(n, answer=long.format(n)) for n in range(20, 24)]
    file, out, summary = tmp_path / "e.jsonl", tmp_path / "s.jsonl", tmp_path / "sum.json"
    file.write_text("\n".join(json.dumps(line) for line in lines))
    result = run(
        "score-file", str(file), "--out", str(out), "--judge", "llm", "--metrics", "faithfulness,topic_similarity",
        "--summary", str(summary),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    records = [decode_record(line) for line in out.read_bytes().splitlines()]
    assert [r.id for r in records] == [f"e{n}" for n in range(24)]
    assert all(r.scores["faithfulness"].value == 1.0 for r in records[:20])
    assert {r.unscored["faithfulness"].reason for r in records[20:]} <= {"judge_error", "judge_busy", "judge_timeout"}
    told = json.loads(summary.read_bytes())
    assert told["metrics"]["faithfulness"]["coverage_by_answer_length"] == {"under 100": 1.0, "100-399": 0.0}
    assert told["judge_cost"]["judge_calls"] == 20
    assert told["judge_cost"]["prompt_tokens"] == 2000
    assert "the judge: 20 calls, 2,000 prompt" in result.output


def test_a_file_waits_for_a_judge_that_comes_back(
    server: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short fault opens the circuit; the file waits for it to close, where the stream would go on without."""
    monkeypatch.setenv("GROUNDWATCH__JUDGE__TIMEOUT_SECONDS", "8")
    well = time.monotonic() + 0.5

    def script(call: Call) -> Answer:
        return Answer(json.dumps(said(call.prompt))) if time.monotonic() > well else refusing(500, "starting")(call)

    server.script = script
    file, out = tmp_path / "e.jsonl", tmp_path / "s.jsonl"
    file.write_text("\n".join(json.dumps(event(n)) for n in range(30)))
    result = run("score-file", str(file), "--out", str(out), "--judge", "llm", "--metrics", "faithfulness")
    assert result.exit_code == 0, result.output
    records = [decode_record(line) for line in out.read_bytes().splitlines()]
    # Those that were at the judge when the circuit opened are lost, no others.
    assert sum("faithfulness" not in r.scores for r in records) <= 4


def test_score_file_needs_an_endpoint(tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text(json.dumps(event(0)))
    result = run("score-file", str(file), "--out", str(tmp_path / "s.jsonl"), "--judge", "llm")
    assert result.exit_code == 2
    assert "--judge llm needs judge.url" in result.output
