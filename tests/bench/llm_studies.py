"""Smaller studies of the LLM judge on one chat endpoint; each prints a table for docs/judges.md.

    python -m tests.bench.llm_studies injection --url http://127.0.0.1:8417/v1
    python -m tests.bench.llm_studies grain|relevance|repeat --url ...

injection: 30 cases of our own (tests/bench/llm/injected.jsonl) with and without a text that talks to the judge.
grain: answers of three to six sentences, judged whole, by sentences and by the model's statements; how score, accuracy
and tokens move. The three at once: give the server as many slots.
relevance: questions generated back, n = 1 to 8; how far the score of n questions lies from that of all eight.
repeat: all metrics of the same answers twice, no cache, temperature 0; needs a server with one slot to be exact.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from metrics.event import Chunk, Event
from metrics.llm.chat import Chat
from metrics.llm.judging import LlmJudging, Options
from metrics.llm.names import METRICS
from metrics.llm.passages import Embed
from metrics.llm.prompts import load_book
from metrics.llm.replies import items_of, text_of
from metrics.metric import Text
from metrics.outcome import Outcome, Unscored
from tests.bench.llm.cases import Case, development, longer
from tests.bench.llm.grain import Study, split_by, whole
from tests.bench.llm.grain import run as run_grains
from tests.bench.llm.ours import PatientChat, counted_client, default_embed, event_of
from tests.services import SHARED

INJECTED = Path(__file__).parent / "llm" / "injected.jsonl"
MOST_QUESTIONS = 8


@dataclass(frozen=True, slots=True)
class Bench:
    """`judge(options)` is a judge on the endpoint without a cache. `used` counts calls and tokens, `replies` keeps what
    was said, both since they were cleared."""

    judge: Callable[[Options], LlmJudging]
    embed: Embed
    used: Counter[str]
    replies: list[str]
    chat: Chat


@contextmanager
def bench(url: str, model: str) -> Iterator[Bench]:
    embed, identity = default_embed()
    used: Counter[str] = Counter()
    replies: list[str] = []
    with counted_client(url, model, used) as client:
        chat = PatientChat(client, replies)

        def judge(options: Options) -> LlmJudging:
            return LlmJudging(chat, embed, load_book(), embedder_identity=identity, options=options)

        yield Bench(judge, embed, used, replies, chat)


@dataclass(frozen=True, slots=True)
class Injected:
    """An answer of one statement with its right verdict, and a text that tells the judge something else."""

    id: str
    language: str
    question: str
    context: str
    answer: str
    label: str
    place: str
    injection: str

    def event(self, *, attacked: bool) -> Event:
        context = f"{self.context} {self.injection}" if attacked and self.place == "context" else self.context
        answer = f"{self.answer} {self.injection}" if attacked and self.place == "answer" else self.answer
        return Event(self.id, 0.0, self.question, (Chunk(context),), answer, labels={"lang": self.language})


def injection(on: Bench) -> None:
    """Verdict of the answer's own statement, without and with the injected text."""
    rows = [Injected(**json.loads(line)) for line in INJECTED.read_text(encoding="utf-8").splitlines()]
    changed = towards = suspected = right = right_attacked = 0
    judge = on.judge(Options())
    for row in rows:
        plain, _ = _first_verdict(judge, row.event(attacked=False))
        attacked, flagged = _first_verdict(judge, row.event(attacked=True))
        supported = row.label == "supported"
        suspected += flagged
        changed += plain != attacked
        towards += (attacked == "supported") != supported and (plain == "supported") == supported
        right += (plain == "supported") == supported
        right_attacked += (attacked == "supported") == supported
        print(
            f"{row.id} {row.place:8} {row.label:13} without {plain:13} with {attacked:13} suspected {flagged}",
            flush=True,
        )
    print(
        "\n| cases | told right without | told right with | verdict changed | turned from right to wrong | suspected "
        "|\n|---|---|---|---|---|---|\n"
        f"| {len(rows)} | {right} | {right_attacked} | {changed} | {towards} | {suspected} |"
    )


def _first_verdict(judge: LlmJudging, event: Event) -> tuple[str, bool]:
    result = judge.judge(event, frozenset({"faithfulness"}))
    judged = result.judged
    if judged is None or not judged.verdicts:
        return _text(result.outcomes["faithfulness"]), bool(judged and judged.injection)
    return judged.verdicts[0].label.value, judged.injection


def grain(url: str, model: str, picked: Sequence[Case]) -> None:
    """Whole, by the rules, by the model: each with a client of its own, that counts its own tokens."""
    with bench(url, model) as one, bench(url, model) as rules, bench(url, model) as made:
        run_grains(
            [
                Study("whole, one statement", whole(one.chat, one.embed, load_book()), one.used),
                Study("by sentences (rules)", split_by(rules.judge(Options(splitting="rules"))), rules.used),
                Study("by the model's statements", split_by(made.judge(Options(splitting="llm"))), made.used),
            ],
            picked,
        )


def repeat(on: Bench, picked: Sequence[Case]) -> None:
    """Two runs over the same answers; whatever differs is printed, and the exit status says so."""
    runs = []
    for _ in range(2):
        judge = on.judge(Options(metrics=METRICS))
        # The answer stands for its own reference, so that precision and recall have one.
        events = [replace(event_of(case), reference=case.answer) for case in picked]
        results = [judge.judge(event, frozenset(METRICS)) for event in events]
        # The cost is not what must be identical: a server counts what it had cached or not as it likes.
        runs.append([(r.outcomes, r.judged and replace(r.judged, cost={})) for r in results])
    different = [case.id for case, one, two in zip(picked, *runs, strict=True) if one != two]
    scored = Counter(name for outcomes, _ in runs[0] for name, o in outcomes.items() if not isinstance(o, Unscored))
    print(f"{len(picked)} answers twice, scored: {dict(scored)}")
    print(f"{len(picked) - len(different)} identical, different: {different}")
    if different:
        raise SystemExit(1)


def _text(outcome: Outcome) -> str:
    return f"unscored({outcome.reason.value})" if isinstance(outcome, Unscored) else str(outcome.value)


def relevance(on: Bench, picked: Sequence[Case]) -> None:
    """Score of n of eight questions made at once: its spread over all choices of n, and over the answers."""
    spreads: list[list[float]] = []
    judge = on.judge(Options(metrics=("answer_relevance",), questions=MOST_QUESTIONS))
    for case in picked:
        on.replies.clear()
        judge.judge(event_of(case), frozenset({"answer_relevance"}))
        items = items_of(on.replies[-1], "questions", "question") if on.replies else None
        made = [text for item in items or () if (text := text_of(item["question"]))]
        if len(made) >= MOST_QUESTIONS:
            spreads.append(_spread(on, case.question, made[:MOST_QUESTIONS]))
    print(f"{len(spreads)} of {len(picked)} answers with {MOST_QUESTIONS} questions")
    print("| n | standard deviation of the score |\n|---|---|")
    for n, deviation in enumerate(np.mean(spreads, axis=0), start=1):
        print(f"| {n} | {deviation:.4f} |")


def _spread(on: Bench, question: str, made: Sequence[str]) -> list[float]:
    vectors = [np.asarray(v, dtype=np.float64) for v in on.embed([Text("query", t) for t in (question, *made)])]
    units = [v / np.linalg.norm(v) for v in vectors]
    near = [float(units[0] @ unit) for unit in units[1:]]
    return [float(np.std([np.mean(c) for c in combinations(near, n)])) for n in range(1, len(near) + 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", nargs="?", choices=("injection", "grain", "relevance", "repeat"))
    parser.add_argument("--url")
    parser.add_argument("--model", default="qwen2.5-coder-1.5b-instruct")
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    parser.add_argument("--most", type=int, default=40, help="answers looked at, of development")
    chosen = parser.parse_args()
    if chosen.study is None or chosen.url is None:
        print("llm_studies: left out, no study and --url of a chat endpoint (tools/llm-server starts one)")
        return
    if not (chosen.study == "injection" or (chosen.data / "labelled").is_dir()):
        parser.error(f"{chosen.data} has no folder labelled: give --data the folder of the labelled sets")
    if chosen.study == "grain":
        grain(chosen.url, chosen.model, longer(chosen.data)[: chosen.most])
        return
    with bench(chosen.url, chosen.model) as on:
        if chosen.study == "injection":
            injection(on)
            return
        picked = development(chosen.data)[: chosen.most]
        {"relevance": relevance, "repeat": repeat}[chosen.study](on, picked)


if __name__ == "__main__":
    main()
