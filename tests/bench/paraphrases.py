"""How the lexical judge takes Chinese sentences said in other words: `python -m tests.bench.paraphrases`.

50 passages written for this, each with a faithful paraphrase and a wrong one, judged against theirs and two others.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from metrics.event import Chunk
from metrics.judge import Judgement, JudgeRequest, Label, Statement, Verdict
from metrics.lexical.judge import LexicalJudge
from tests.bench.judges import auroc

ROWS = Path(__file__).parent / "paraphrases_zh.jsonl"


def verdicts(judge: LexicalJudge, rows: list[dict[str, str]], kind: str) -> list[Verdict]:
    found: list[Verdict] = []
    for k, row in enumerate(rows):
        beside = (rows[(k + step) % len(rows)]["context"] for step in (3, 7))
        chunks = tuple(Chunk(text) for text in (row["context"], *beside))
        statement = Statement(row[kind], 0, len(row[kind]))
        [judgement] = judge.judge([JudgeRequest(None, (statement,), chunks)])
        if not isinstance(judgement, Judgement):
            raise SystemExit(f"row {k + 1}: the judge gave {judgement}")
        found += judgement.verdicts
    return found


def main() -> None:
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    judge = LexicalJudge()
    faithful, wrong = (verdicts(judge, rows, kind) for kind in ("supported", "unsupported"))
    labels = np.repeat([1, 0], [len(faithful), len(wrong)])
    area = auroc(labels, np.array([v.probability for v in (*faithful, *wrong)]))
    print(f"faithful, supported: {sum(v.label is Label.SUPPORTED for v in faithful)} of {len(rows)}")
    print(f"wrong, not supported: {sum(v.label is not Label.SUPPORTED for v in wrong)} of {len(rows)}")
    print(f"AUROC of the probability: {area:.2f}")


if __name__ == "__main__":
    main()
