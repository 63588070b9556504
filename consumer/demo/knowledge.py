"""The help desk's documents and questions (`knowledge_en.toml`, `knowledge_zh.toml`), and their retrieval."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

LANGUAGES = ("en", "zh")
APPS = ("hr-helpdesk", "it-helpdesk")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the answer that its document supports."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Change:
    """What an update of a document changes: `old` words become `new`; an answer from old knowledge has `said`."""

    old: str
    new: str
    said: str


@dataclass(frozen=True, slots=True)
class Document:
    id: str
    app: str
    lang: str
    topic: str
    title: str
    text: str
    asked: tuple[Asked, ...]
    changes: tuple[Change, ...] = ()

    def updated(self) -> Document:
        """The next version of the document: numbers, dates and names changed, its questions and answers as before."""
        text = self.text
        for change in self.changes:
            text = text.replace(change.old, change.new)
        return replace(self, text=text)

    def outdates(self, answer: str) -> bool:
        """Whether the update makes `answer` wrong."""
        return any(change.said in answer for change in self.changes)


def load_documents() -> tuple[Document, ...]:
    """All documents of both languages, in the order of the files."""
    return tuple(document for lang in LANGUAGES for document in _load(lang))


def _load(lang: str) -> list[Document]:
    source = files("consumer.demo").joinpath(f"knowledge_{lang}.toml").read_text(encoding="utf-8")
    return [
        Document(
            id=f"{lang}-{number:02d}",
            app=entry["app"],
            lang=lang,
            topic=entry["topic"],
            title=entry["title"],
            text=entry["text"],
            asked=tuple(Asked(question, answer) for question, answer in entry["ask"]),
            changes=tuple(_change(*words) for words in entry.get("updated", ())),
        )
        for number, entry in enumerate(tomllib.loads(source)["document"], start=1)
    ]


def _change(old: str, new: str, said: str | None = None) -> Change:
    return Change(old, new, said or old)


def right_documents(rng: random.Random, asked: Document, all_documents: Sequence[Document], k: int) -> list[Document]:
    """`k` documents with `asked` among them, usually first; the others are of the same app, its own topic first."""
    others = [d for d in all_documents if d.app == asked.app and d.lang == asked.lang and d.id != asked.id]
    rng.shuffle(others)
    others.sort(key=lambda d: d.topic != asked.topic)
    place = 0 if rng.random() < 0.8 else 1
    return [*others[:place], asked, *others[place : k - 1]]


def wrong_documents(rng: random.Random, asked: Document, all_documents: Sequence[Document], k: int) -> list[Document]:
    """`k` documents of the same language from the other app: what a mixed-up index returns."""
    return rng.sample([d for d in all_documents if d.app != asked.app and d.lang == asked.lang], k)
