"""`groundwatch correlate` as a user runs it, on answers whose ratings are known."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from prometheus_client import CollectorRegistry

from consumer import cli
from consumer.commands import correlate as commands_correlate
from consumer.embedders import cache_counter, evaluator_over
from consumer.ratings import RatingError, RatingReader, number_of
from consumer.settings import Settings
from metrics.evaluation import Evaluator
from tests.integration.scorer_harness import HashEmbedder


@pytest.fixture(autouse=True)
def quick_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluator(settings: Settings) -> Evaluator:
        registry = CollectorRegistry()
        return evaluator_over(settings, HashEmbedder(), registry, cache_counter(registry))

    monkeypatch.setattr(commands_correlate, "_evaluator", evaluator)


def rated(n: int, groups: int = 0) -> list[dict[str, Any]]:
    """Answers about leave, some with a wrong number, rated 1 to 5 by whether they are right (and some noise)."""
    rng = random.Random(9)
    rows = []
    for number in range(n):
        days, wrong = 20 + number % 9, rng.random() < 0.4
        said = days + 3 if wrong else days
        chinese = number % 3 == 0
        rows.append(
            {
                "id": f"e{number}",
                "question": f"员工{number}有几天年假？" if chinese else f"How many days does grade {number} have?",
                "contexts": [f"员工{number}每年有{days}天年假。" if chinese
                             else f"Grade {number} has {days} days of leave a year. Ask jane.doe@example.com."],
                "answer": f"员工{number}每年有{said}天年假。" if chinese
                else f"Grade {number} has {said} days of leave a year.",
                "rating": rng.choice([1, 2]) if wrong else rng.choice([4, 5, 5]),
            }
            | ({"group": f"g{number % groups}"} if groups else {})
        )  # fmt: skip
    return rows


def write(file: Path, rows: Sequence[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return file


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.group, ["correlate", *map(str, arguments), "--resamples", "200"])


def test_a_metric_that_sees_what_people_see_agrees_and_one_that_does_not_is_told_apart(tmp_path: Path) -> None:
    file, out = write(tmp_path / "rated.jsonl", rated(150)), tmp_path / "out.json"
    done = run(file, "--out", out, "--plot", tmp_path / "reliability.svg")
    assert done.exit_code == 0, done.output
    told = json.loads(out.read_bytes())
    whole = {a["metric"]: a for a in told["agreement"] if a["segment"] == "all"}
    faithful, unrelated = whole["faithfulness"], whole["question_answer_similarity"]
    assert faithful["spearman"]["low"] > 0.6
    assert faithful["auroc"]["value"] > 0.9
    assert faithful["balanced_accuracy"]["value"] > 0.9
    assert (faithful["threshold"], told["good_from"], told["rating"]) == (0.75, 3.0, "rating")
    assert unrelated["spearman"]["low"] < 0.0 < unrelated["spearman"]["high"]
    assert "not told from no agreement at all" in unrelated["doubts"][0]
    assert unrelated["balanced_accuracy"] is None  # it has no threshold
    assert {a["segment"] for a in told["agreement"]} == {"all", "lang=en", "lang=zh"}
    assert sum(b["n"] for b in told["reliability"]["faithfulness"]) == 150
    assert len(told["disagreements"]) > 5
    for said in ("agrees with people", "share of good answers by score", "strongest disagreements", "at 0.75"):
        assert said in done.output, said
    assert "jane.doe@example.com" not in done.output
    assert "<svg" in (tmp_path / "reliability.svg").read_text(encoding="utf-8")


def test_too_few_answers_or_groups_are_said_to_be_too_few(tmp_path: Path) -> None:
    few = run(write(tmp_path / "few.jsonl", rated(20)))
    assert few.exit_code == 0
    assert "20 answers are too few to conclude anything (at least 30)" in " ".join(few.output.split())
    out = tmp_path / "out.json"
    assert run(write(tmp_path / "grouped.jsonl", rated(120, groups=12)), "--out", out).exit_code == 0
    doubts = json.loads(out.read_bytes())["agreement"][0]["doubts"]
    assert doubts == ["120 answers in 12 groups are too few to conclude anything (at least 30)"]


def test_binary_ratings_in_a_field_of_the_user_s_own(tmp_path: Path) -> None:
    rows = rated(60)
    for row in rows:
        row["review"] = {"verdict": "good" if row.pop("rating") > 3 else "bad"}
    rows[0]["review"] = None
    out = tmp_path / "out.json"
    done = run(write(tmp_path / "rated.jsonl", rows), "--rating", "review.verdict", "--out", out)
    assert done.exit_code == 0, done.output
    told = json.loads(out.read_bytes())
    assert told["good_from"] == 0.5
    assert told["agreement"][0]["n"] == 59
    assert "1 rows without a rating" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("changes", "arguments", "exit_code", "says"),
    [
        ({"rating": "splendid"}, [], 1, "line 1: 'splendid' is no rating"),
        ({"rating": None}, [], 1, "no row has both a score and a rating (none found)"),
        ({}, ["--rating", "verdict"], 1, "a rating (verdict); fields of the rows: id, question,"),
        ({}, ["--group", "team"], 0, "no rated row has the group 'team', so each is one of its own; fields"),
        ({}, ["--rating", "a["], 2, "is no JMESPath expression"),
        ({}, ["--plot", "x.gif"], 2, "must end in .svg"),
        ({}, ["--baseline", "nowhere.json"], 2, "nowhere.json"),
    ],
)
def test_mistakes_are_told_without_a_traceback(
    changes: dict[str, Any], arguments: list[str], exit_code: int, says: str, tmp_path: Path
) -> None:
    done = run(write(tmp_path / "rated.jsonl", [row | changes for row in rated(3)]), *arguments)
    assert done.exit_code == exit_code
    assert says in done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)


def test_ratings_are_read_in_many_shapes() -> None:
    assert [number_of(v) for v in (3, 0.5, True, "Good", "错", "4", [1, None, 0], None)] == [
        3.0, 0.5, 1.0, 1.0, 0.0, 4.0, 0.5, None,
    ]  # fmt: skip
    for wrong in ("perhaps", {"a": 1}, [], float("nan"), "nan"):
        with pytest.raises(RatingError, match="is no rating"):
            number_of(wrong)
    reader = RatingReader(None, None)
    assert reader.read({"id": "1"}) is None
    found = reader.read({"label": 1, "score": 0.2, "group": "q1"})
    assert found is not None
    assert (found.rating, found.group, reader.field) == (1.0, "q1", "label")
    assert reader.read({"score": 0.2}) is None  # the field is that of the first rated row
