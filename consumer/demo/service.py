"""The simulated help desk: it takes a question, retrieves documents and answers, and its events are what is logged.

It stands in for the production QA service; nothing in Groundwatch knows that it is simulated.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from consumer.demo.knowledge import APPS, LANGUAGES, Asked, Document, right_documents, wrong_documents
from consumer.demo.script import Fault
from metrics.event import Chunk, Event

CHUNKS = 3
NO_DOCUMENTS = 0.01
"""Share of requests for which retrieval finds nothing; half of them end without an answer."""
REFUSALS = 0.02
THUMBS_DOWN = {Fault.NONE: 0.02, Fault.OLD_KNOWLEDGE: 0.04, Fault.WRONG_DOCUMENTS: 0.12}
KB_VERSION = {Fault.NONE: "2026-11", Fault.OLD_KNOWLEDGE: "2026-12", Fault.WRONG_DOCUMENTS: "2026-11"}

Retrieve = Callable[[random.Random, Document, Sequence[Document], int], list[Document]]
_RETRIEVAL: Mapping[Fault, Retrieve] = {
    Fault.NONE: right_documents,
    Fault.OLD_KNOWLEDGE: right_documents,
    Fault.WRONG_DOCUMENTS: wrong_documents,
}


@dataclass(frozen=True, slots=True)
class Phrases:
    """Ways to begin and end, so that no two conversations need to read the same."""

    question_starts: tuple[str, ...]
    question_ends: tuple[str, ...]
    answer_starts: tuple[str, ...]
    answer_ends: tuple[str, ...]
    refusal: str


_PHRASES = {
    "en": Phrases(
        question_starts=("", "", "", "Hello, ", "Quick question: ", "Hi, jo.{n}@example.org here. ", "Sorry: "),
        question_ends=(
            "", "", "", " Thanks!", " It is urgent.", " My staff number is {n}.", " I sit in building {b}.",
            " My number is +1 415 555 0{p}.",
        ),
        answer_starts=("", "", "", "According to the handbook: ", "Good question. ", "Thanks for asking. "),
        answer_ends=("", "", "", " Let me know if you need more.", " Have a good day!", " Is there anything else?"),
        refusal="I could not find anything about this in the documents.",
    ),
    "zh": Phrases(
        question_starts=("", "", "", "你好，", "请问，", "打扰一下，", "我是{n}号员工，"),
        question_ends=(
            "", "", "", "谢谢！", "比较着急。", "我在{b}号楼。", "麻烦了。", "我的邮箱是li{n}@example.org。",
        ),
        answer_starts=("", "", "", "根据员工手册，", "您好！", "感谢您的提问。"),
        answer_ends=("", "", "", "还有问题请随时联系。", "祝您工作顺利！", "还需要其他帮助吗？"),
        refusal="很抱歉，我没有在资料中找到相关的信息。",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Handled:
    """One answered request; `bad` says that the script made the answer wrong for its documents."""

    event: Event
    bad: bool


class HelpDesk:
    """Answers questions of its own making. The same seed gives the same conversation."""

    def __init__(self, documents: Sequence[Document], seed: int) -> None:
        self._documents = documents
        self._indexed = dict.fromkeys(Fault, documents)
        self._indexed[Fault.OLD_KNOWLEDGE] = [document.updated() for document in documents]
        self._rng = random.Random(seed)

    def handle(self, fault: Fault, now: float) -> Handled:
        """One request, answered while `fault` is at work; `now` is the time of the event (seconds since the epoch)."""
        rng = self._rng
        app, lang = rng.choice(APPS), rng.choice(LANGUAGES)
        document = rng.choice([d for d in self._documents if (d.app, d.lang) == (app, lang)])
        asked = rng.choice(document.asked)
        event = Event(
            id=str(uuid.UUID(int=rng.getrandbits(128), version=4)),
            timestamp=now,
            question=self._question(asked, lang),
            contexts=self._retrieved(document, fault),
            answer=self._answer(asked, lang),
            trace_id=f"{rng.getrandbits(128):032x}",
            labels={"app": app, "lang": lang, "model": "desk-llm-2", "kb_version": KB_VERSION[fault]},
            feedback=-1.0 if rng.random() < THUMBS_DOWN[fault] else None,
        )
        logged = self._with_mishap(event, lang)
        wrong = fault is Fault.WRONG_DOCUMENTS or (fault is Fault.OLD_KNOWLEDGE and document.outdates(asked.answer))
        return Handled(logged, wrong and logged is event)

    def _question(self, asked: Asked, lang: str) -> str:
        phrases = _PHRASES[lang]
        text = self._rng.choice(phrases.question_starts) + asked.question + self._rng.choice(phrases.question_ends)
        return text.format(n=self._rng.randint(1000, 9999), b=self._rng.randint(1, 9), p=self._rng.randint(100, 199))

    def _answer(self, asked: Asked, lang: str) -> str:
        phrases = _PHRASES[lang]
        return self._rng.choice(phrases.answer_starts) + asked.answer + self._rng.choice(phrases.answer_ends)

    def _retrieved(self, document: Document, fault: Fault) -> tuple[Chunk, ...]:
        indexed = self._indexed[fault]
        asked_of = next(d for d in indexed if d.id == document.id)
        found = _RETRIEVAL[fault](self._rng, asked_of, indexed, CHUNKS)
        scores = sorted((self._rng.uniform(0.55, 0.95) for _ in found), reverse=True)
        return tuple(
            Chunk(text=f"{d.title}. {d.text}", id=d.id, score=round(score, 3), source=f"{d.topic}/{d.title}")
            for d, score in zip(found, scores, strict=True)
        )

    def _with_mishap(self, event: Event, lang: str) -> Event:
        """Now and then retrieval finds nothing, the model says nothing, or it declines."""
        chance = self._rng.random()
        if chance < NO_DOCUMENTS / 2:
            return replace(event, contexts=(), answer="")
        if chance < NO_DOCUMENTS:
            return replace(event, contexts=())
        if chance < NO_DOCUMENTS + REFUSALS:
            return replace(event, answer=_PHRASES[lang].refusal)
        return event


def broken_record(rng: random.Random) -> bytes | None:
    """What other writers leave on a topic: cut JSON, a record without an answer, plain text, a tombstone (None)."""
    return rng.choice(
        (
            b'{"id": "cut-off", "question": "Where is the cante',
            b'{"id": "no-answer", "question": "Where is the canteen?", "contexts": ["It is on floor 2."]}',
            b"INFO 2026-11-29 help desk started",
            None,
        )
    )
