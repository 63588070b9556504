"""How the score moves with the grain of the split: the same answers whole, by sentences, by the model's statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from metrics import faithfulness
from metrics.judge import Judgement, Statement
from metrics.lexical.judge import LexicalJudge
from metrics.llm.asking import Session, Unjudged
from metrics.llm.chat import Chat
from metrics.llm.injection import fence
from metrics.llm.judging import LlmJudging, Options
from metrics.llm.passages import Embed, rank, sources_of
from metrics.llm.prompts import PromptBook
from metrics.llm.verdict_cache import NoCache
from metrics.llm.verdicts import Held, verdicts_of
from metrics.outcome import Outcome, Scored, Unscored
from tests.bench.llm.cases import Case
from tests.bench.llm.comparison import THRESHOLD
from tests.bench.llm.ours import event_of


@dataclass(frozen=True, slots=True)
class Split:
    """What one grain made of one answer."""

    outcome: Outcome
    statements: int


Grain = Callable[[Case], Split]


@dataclass(frozen=True, slots=True)
class Study:
    """One grain, with its own count of calls and tokens."""

    name: str
    grain: Grain
    used: Counter[str]


def whole(chat: Chat, embed: Embed, book: PromptBook) -> Grain:
    """The answer as one statement, through the product's own judging of a statement."""

    def judge(case: Case) -> Split:
        event = event_of(case)
        statements = (Statement(" ".join(case.answer.split()), 0, len(case.answer)),)
        options = Options()
        sources = sources_of(event.contexts, ())
        ranked = rank(sources, embed)
        session = Session(chat, book.of(case.language), NoCache(), fence([case.question, case.answer, *case.contexts]))
        held = Held(
            case.question, sources, ranked, embed, 1, options.passage_tokens, LexicalJudge(), options.cross_check
        )
        try:
            verdicts = verdicts_of(session, statements, held)
        except Unjudged as failed:
            return Split(Unscored(failed.reason), 1)
        return Split(faithfulness.faithfulness(statements, Judgement(verdicts)), 1)

    return judge


def split_by(judging: LlmJudging) -> Grain:
    """As the product splits, by the rules or by the model."""

    def judge(case: Case) -> Split:
        result = judging.judge(event_of(case), frozenset({"faithfulness"}))
        return Split(result.outcomes["faithfulness"], len(result.judged.statements) if result.judged else 0)

    return judge


def run(studies: Sequence[Study], cases: Sequence[Case]) -> None:
    """All grains at once, case after case; a line a case as it comes, the tables at the end."""

    def one(study: Study) -> list[Split]:
        splits = []
        for case in cases:
            split = study.grain(case)
            splits.append(split)
            print(f"{case.id} label {case.label} {study.name}: {split.statements} {_told(split.outcome)}", flush=True)
        return splits

    with ThreadPoolExecutor(len(studies)) as pool:
        found = dict(zip((study.name for study in studies), pool.map(one, studies), strict=True))
    print(
        "\n| judged | statements an answer | mean score, supported | mean score, unsupported | balanced accuracy at "
        f"{THRESHOLD} | unscored | calls | tokens |\n|---|---|---|---|---|---|---|---|"
    )
    for study in studies:
        print(_line(study, cases, found[study.name]))
    print("\n" + "\n".join(_moves(cases, found)))


def _told(outcome: Outcome) -> str:
    return f"{outcome.value:.3f}" if isinstance(outcome, Scored) else f"unscored({outcome.reason.value})"


def _line(study: Study, cases: Sequence[Case], splits: Sequence[Split]) -> str:
    means, right = [], []
    for label in (1, 0):
        outcomes = [s.outcome for s, case in zip(splits, cases, strict=True) if case.label == label]
        means.append(np.mean([o.value for o in outcomes if isinstance(o, Scored)]))
        right.append(np.mean([isinstance(o, Scored) and (o.value >= THRESHOLD) == bool(label) for o in outcomes]))
    unscored = sum(isinstance(s.outcome, Unscored) for s in splits)
    tokens = study.used["prompt_tokens"] + study.used["completion_tokens"]
    statements = np.mean([s.statements for s in splits])
    return (
        f"| {study.name} | {statements:.1f} | {means[0]:.3f} | {means[1]:.3f} | {np.mean(right):.3f} | {unscored} | "
        f"{study.used['calls']} | {tokens:,} |"
    )


def _moves(cases: Sequence[Case], found: Mapping[str, Sequence[Split]]) -> Iterator[str]:
    """From each grain to the next finer one: how far the scores move, and how many answers change sides."""
    names = list(found)
    for coarse, fine in pairwise(names):
        moved = [
            (a.outcome.value, b.outcome.value)
            for a, b in zip(found[coarse], found[fine], strict=True)
            if isinstance(a.outcome, Scored) and isinstance(b.outcome, Scored)
        ]
        changes = np.array([b - a for a, b in moved])
        sides = sum((a >= THRESHOLD) != (b >= THRESHOLD) for a, b in moved)
        yield (
            f"from {coarse} to {fine}: {len(moved)} of {len(cases)} answers scored by both, mean change "
            f"{changes.mean():+.3f}, mean size {np.abs(changes).mean():.3f}, {sides} change sides"
        )
