"""What a statement costs the local judge, as the product builds it, with window vectors cold and warm.

    python -m tests.bench.local_judge_speed [--threads 1 2] [--precision auto fp32 bf16 int8]

16 answers of four statements, three contexts of 200 words each, in batch. The time is that of `judge` alone: reading,
narrowing, both models. Cold: the windows' vectors are computed too; warm: they are in the cache.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path

from consumer.embedders import build_evaluator
from consumer.local_models import prepare_torch
from consumer.settings import Settings
from metrics.event import Chunk
from metrics.judge import Judge, JudgeRequest, Statement
from metrics.lexical import corpus
from metrics.lexical.corpus import Row
from metrics.verifier.sources import sentences
from tests.services import SHARED

ANSWERS = 16
ROUNDS = 4


def requests(rows: Sequence[Row], about: float, seed: int) -> list[JudgeRequest]:
    """A share `about` of the statements is about the contexts: the claims that were checked against them, and one of
    their sentences. The others are about something else."""
    rng = random.Random(seed)
    fit = [row for row in rows if 30 < len(row.answer) < 200 and len(row.contexts[0].split()) > 60]
    asked = []
    for _ in range(ANSWERS):
        drawn = rng.sample(fit, 27)
        own, others, filling = drawn[:3], drawn[3:7], drawn[7:]
        filler = " ".join(" ".join(row.contexts) for row in filling).split()
        words = [" ".join(row.contexts).split() for row in own]
        three = tuple(Chunk(" ".join((w + filler)[:200])) for w in words)
        said = [sentence for chunk in three for sentence in sentences(chunk.text, 60, 200)]
        true = dict.fromkeys([*(row.answer for row in own), *rng.sample(said, len(said))])
        four = [ours if rng.random() < about else row.answer for ours, row in zip(true, others, strict=False)]
        asked.append(JudgeRequest(None, tuple(Statement(s, 0, len(s)) for s in four), three))
    return asked


def seconds_a_statement(judge: Judge, asked: Sequence[JudgeRequest]) -> float:
    started = time.perf_counter()
    judge.judge(asked)
    return (time.perf_counter() - started) / sum(len(a.statements) for a in asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, len(os.sched_getaffinity(0))])
    parser.add_argument("--precision", nargs="*", default=["auto", "bf16"])
    chosen = parser.parse_args()
    rows = corpus.labelled(chosen.data, "wice_claims")
    print(
        "| threads | precision | about the contexts | ms a statement, cold | warm |", "|---|---|---|---|---|", sep="\n"
    )
    for threads in dict.fromkeys(chosen.threads):
        for precision in chosen.precision:
            embedding = {"precision": precision, "threads": threads}
            settings = Settings.model_validate({"judge": {"kind": "local"}, "embedding": embedding})
            prepare_torch(threads)
            judge = build_evaluator(settings, None).judge
            assert judge is not None
            judge.judge(requests(rows, 1.0, 0))
            for share in (1.0, 0.5):
                # Other seeds, other contexts: none is warm before its turn.
                sets = [requests(rows, share, round(100 * share) + k) for k in range(ROUNDS)]
                cold = min(seconds_a_statement(judge, asked) for asked in sets)
                warm = min(seconds_a_statement(judge, asked) for asked in sets)
                print(f"| {threads} | {precision} | {share:.0%} | {1e3 * cold:.1f} | {1e3 * warm:.1f} |", flush=True)


if __name__ == "__main__":
    main()
