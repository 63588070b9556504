"""End to end: a judge that fails is told as that, never as a fall of quality."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path

import pytest

from tests.alerting_stack import CACHE_OPTIONS, Stack, redis, stack
from tests.integration.judge_server import Answer, Call, JudgeServer, in_form, judge_server, refusing, within
from tests.integration.test_alerting import METRICS, QUALITY, RATE, SETTLE, calm
from tests.processes import wait_until

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

JUDGE = {"GroundwatchJudgeFailing"}
MISSING = {"GroundwatchCoverageLow", "GroundwatchNoScores"}
"""What else may be told: scores are missing."""


def approving(call: Call) -> Answer:
    """Everything is supported by the first passage."""
    passages = within(call.prompt, "passages") or within(call.prompt, "资料")
    quote = passages.partition("\n")[0].partition("] ")[2]
    verdict = {"reason": "the first passage says it", "verdict": "supported", "quote": quote}
    return Answer(json.dumps(in_form(verdict, call.prompt), ensure_ascii=False))


def test_a_failing_judge_is_told_as_such_and_no_fall_of_quality(
    kafka: str, alerting_binaries: dict[str, str], tmp_path: Path
) -> None:
    with (
        judge_server(approving) as judge,
        redis(tmp_path, *CACHE_OPTIONS) as cache,
        redis(tmp_path) as cases,
        stack(
            tmp_path,
            kafka,
            alerting_binaries,
            uuid.uuid4().hex[:8],
            cache_url=cache.url,
            cases_url=cases.url,
            rate=RATE,
            metrics=METRICS,
            judge={**judge.settings(), "cache": False},
        ) as running,
    ):
        calm(running)
        without_judge(running, judge)


def without_judge(running: Stack, judge: JudgeServer) -> None:
    began = time.monotonic()
    judge.script = refusing(500, "out of memory")
    wait_until(lambda: running.receiver.firing(since=began) >= JUDGE, 90, "the failing judge is told")
    time.sleep(SETTLE)
    told = running.receiver.firing(since=began)
    assert not told & QUALITY
    assert told <= JUDGE | MISSING
    judge.script = approving
    wait_until(
        lambda: all(running.receiver.of(name, "resolved", since=began) for name in JUDGE), 90, "it is told as mended"
    )
    assert not running.receiver.firing(since=began) & QUALITY
