"""The pool: room, deadlines, and one result for every answer, whatever the judge does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from consumer.intake import Sampled
from consumer.judging.budget import Budget
from consumer.judging.handover import Handover
from consumer.judging.pool import RemotePool
from consumer.record import Position
from metrics.evaluation import Evaluation, RemoteResult
from metrics.event import Chunk, Event
from metrics.outcome import Outcome, Reason, Scored, Unscored
from tests.processes import wait_until
from tests.unit.test_judge_budget import Clock, judge

WANTED = frozenset({"faithfulness"})


def event(number: int) -> Event:
    return Event(f"e{number}", 0.0, "q", (Chunk("Returns are free."),), "Returns are free.")


@dataclass
class Scripted:
    """A `TimedJudge` for these tests; `does` is called for every answer."""

    does: Callable[[Event], None]
    is_open: bool = False
    probes: int = 0
    seen: list[str] = field(default_factory=list)

    def judge_until(self, event: Event, wanted: frozenset[str], deadline: float) -> RemoteResult:
        self.seen.append(event.id)
        self.does(event)
        return RemoteResult({name: Scored(1.0) for name in wanted})

    def probe_if_due(self) -> None:
        self.probes += 1


@contextmanager
def pool_over(judge: Scripted, concurrency: int = 2, waiting: int = 2, seconds: float = 0.4) -> Iterator[RemotePool]:
    pool = RemotePool(judge, concurrency=concurrency, waiting=waiting, timeout_seconds=seconds, now=time.monotonic)
    pool.start()
    try:
        yield pool
    finally:
        pool.stop(1.0)


def submitted(pool: RemotePool, numbers: range) -> list[tuple[int, Outcome]]:
    """Hands answers in; the list fills as they come back."""
    results: list[tuple[int, Outcome]] = []

    def hand_in(number: int) -> None:
        pool.submit(event(number), WANTED, lambda result: results.append((number, result.outcomes["faithfulness"])))

    for number in numbers:
        hand_in(number)
    return results


def test_every_answer_comes_back_scored() -> None:
    with pool_over(Scripted(lambda e: None), waiting=100) as pool:
        results = submitted(pool, range(50))
        wait_until(lambda: len(results) == 50, 5, "all")
        assert {outcome for _, outcome in results} == {Scored(1.0)}
        assert pool.held == 0


def test_a_result_that_cannot_be_handed_on_is_seen_by_the_owner() -> None:
    """Its event is in flight for good, so the scorer has to end; the other answers still come back."""

    def refuse(result: RemoteResult) -> None:
        raise OSError("no room for the record")

    with pool_over(Scripted(lambda e: None), waiting=100) as pool:
        assert pool.sound
        pool.submit(event(0), WANTED, refuse)
        wait_until(lambda: not pool.sound, 5, "the fault is seen")
        results = submitted(pool, range(1, 4))
        wait_until(lambda: len(results) == 3, 5, "the others")


def test_beyond_the_room_answers_are_busy_at_once() -> None:
    free = threading.Event()
    with pool_over(Scripted(lambda e: free.wait(5) and None)) as pool:
        begun = time.monotonic()
        results = submitted(pool, range(100))
        assert time.monotonic() - begun < 2
        assert len(results) == 96
        assert {outcome for _, outcome in results} == {Unscored(Reason.JUDGE_BUSY)}
        free.set()
        wait_until(lambda: len(results) == 100, 5, "all")
        assert sum(outcome == Scored(1.0) for _, outcome in results) == 4


def test_a_judge_that_ignores_its_deadline_is_not_waited_for() -> None:
    """Started ones are timeouts, those that never got a thread were busy; late results are dropped."""
    free = threading.Event()
    with pool_over(Scripted(lambda e: free.wait(5) and None)) as pool:
        results = submitted(pool, range(4))
        wait_until(lambda: len(results) == 4, 3, "all by their deadlines")
        reasons = {n: outcome.reason for n, outcome in results if isinstance(outcome, Unscored)}
        assert sorted(reasons.values()) == [Reason.JUDGE_BUSY] * 2 + [Reason.JUDGE_TIMEOUT] * 2
        free.set()
        time.sleep(0.2)
        assert len(results) == 4


def test_while_the_circuit_is_open_nothing_is_asked_and_idle_threads_try() -> None:
    judge = Scripted(lambda e: None, is_open=True)
    with pool_over(judge) as pool:
        results = submitted(pool, range(3))
        assert [outcome for _, outcome in results] == [Unscored(Reason.JUDGE_BUSY)] * 3
        wait_until(lambda: judge.probes > 0, 3, "a probe")
        assert judge.seen == []


def test_an_exception_is_a_reason_and_the_thread_lives_on() -> None:
    def raises(event: Event) -> None:
        if event.id == "e0":
            raise RuntimeError("boom")

    with pool_over(Scripted(raises), concurrency=1, waiting=5) as pool:
        results = submitted(pool, range(3))
        wait_until(lambda: len(results) == 3, 3, "all")
    assert [outcome for _, outcome in results] == [Unscored(Reason.JUDGE_ERROR), Scored(1.0), Scored(1.0)]


def test_a_thinned_answer_keeps_its_other_scores_and_its_probabilities() -> None:
    clock = Clock()
    budget = Budget(judge(calls_per_minute=6), clock.now, clock.wall)
    wholes: list[tuple[Evaluation, dict[str, float]]] = []
    with pool_over(Scripted(lambda e: None), waiting=10_000) as pool:
        handover = Handover(pool, budget, WANTED, "m")
        for number in range(300):
            clock.at += 0.1
            unit = (number % 50) / 50 * 0.5
            sampled = Sampled(event(number), {}, {}, Position("t", 0, number), 0.5, "rate", unit)
            local = Evaluation({"topic_similarity": Scored(0.9)}, {})
            handover.take(sampled, local, lambda whole, own: wholes.append((whole, dict(own))))
        wait_until(lambda: len(wholes) == 300, 5, "all")
    assert all(whole.outcomes["topic_similarity"] == Scored(0.9) for whole, _ in wholes)
    thinned = [own for whole, own in wholes if whole.outcomes["faithfulness"] == Unscored(Reason.BUDGET)]
    judged = [own for whole, own in wholes if whole.outcomes["faithfulness"] == Scored(1.0)]
    assert len(thinned) + len(judged) == 300
    assert thinned
    assert all(own == {} for own in thinned)
    assert 0 < min(own.get("faithfulness", 0.5) for own in judged) < 0.1


def test_what_does_not_apply_takes_no_room_and_does_not_fail() -> None:
    """While the judge is busy or hangs, an event without a reference has no failed context recall."""
    clock = Clock()
    wanted = frozenset({"faithfulness", "context_recall", "context_relevance", "answer_relevance"})
    wholes: list[Evaluation] = []
    with pool_over(Scripted(lambda e: None, is_open=True)) as pool:
        handover = Handover(pool, Budget(judge(), clock.now, clock.wall), wanted, "m")
        for one in (
            event(0),
            replace(event(1), contexts=()),
            replace(event(2), answer=" "),
            replace(event(3), question=""),
            replace(event(4), answer="I could not find that in the documents."),
        ):
            sampled = Sampled(one, {}, {}, Position("t", 0, 0), 1.0, "rate", 0.0)
            handover.take(sampled, Evaluation({}, {}), lambda whole, own: wholes.append(whole))
    reasons = [{n: o.reason for n, o in whole.outcomes.items() if isinstance(o, Unscored)} for whole in wholes]
    busy = Reason.JUDGE_BUSY
    assert reasons[0] == dict.fromkeys(wanted, busy) | {"context_recall": Reason.NO_REFERENCE}
    assert reasons[1]["faithfulness"] is reasons[1]["context_relevance"] is Reason.NO_CONTEXT
    assert reasons[1]["answer_relevance"] is busy
    assert reasons[2]["faithfulness"] is reasons[2]["answer_relevance"] is Reason.EMPTY_ANSWER
    assert reasons[2]["context_relevance"] is busy
    assert reasons[3]["answer_relevance"] is reasons[3]["context_relevance"] is Reason.NO_QUESTION
    assert (reasons[4]["faithfulness"], reasons[4]["answer_relevance"]) == (Reason.NO_CLAIMS, Reason.EVASIVE)
