"""Which case files somebody wants to see: one filter, with the same meaning in Redis, on the topic and in memory."""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import orjson

from consumer.case_file import CaseFile, CaseStatement
from consumer.case_parts import worst_first
from consumer.event_ids import forms_of

SEARCHED = 20_000
"""Characters of a case that a text filter looks at."""
SIGNATURE_BITS = 2048
TERM = 200
TERMS = 64
"""Longest term, and terms of one case: records of a foreign writer shall not fill the store."""
WRONG_STATEMENTS = 8
"""Of one case, the worst ones, that it is found by."""
NO_LABEL = "said:none"
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


@dataclass(frozen=True, slots=True)
class CaseFilter:
    """All conditions must hold; of several values of one condition any is enough. Empty: every case.

    `since` (inclusive) and `until` (exclusive) are times of cases (see `case_time`). `verdicts`: at least one
    statement has it. `text` stands in the question, the answer, the reference or an id, whatever its case and width.
    `labels`: values of contrast dimensions. `asks` and `says` are digests of a question and of a wrong statement (see
    `sameness`).
    """

    since: float | None = None
    until: float | None = None
    flags: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    segment: Mapping[str, str] = field(default_factory=dict)
    verdicts: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    text: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    asks: str = ""
    says: str = ""
    said: tuple[str, ...] = ()
    """`good`, `bad`, `none`: what a person said of it."""

    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Groups of terms (see `terms_of`): a case that matches has at least one term of every group."""
        named = (
            ("flag", self.flags), ("fault", self.faults), ("verdict", self.verdicts), ("why", self.why),
            ("said", self.said),
        )  # fmt: skip
        groups = [tuple(f"{kind}:{value}"[:TERM] for value in values) for kind, values in named if values]
        single = [f"segment:{name}={value}" for name, value in self.segment.items()]
        single += [f"label:{name}={value}" for name, value in self.labels.items()]
        single += [f"{kind}:{digest}" for kind, digest in (("asks", self.asks), ("says", self.says)) if digest]
        return (*groups, *((term[:TERM],) for term in single))

    def matches(self, case: CaseFile, said: str | None = None) -> bool:
        """`said`: what a person said of the case; None where nobody did."""
        at = case_time(case)
        if (self.since is not None and at < self.since) or (self.until is not None and at >= self.until):
            return False
        terms = {*terms_of(case), f"said:{said}" if said else NO_LABEL}
        if not all(terms.intersection(group) for group in self.groups()):
            return False
        return not self.text or folded(self.text) in searched_text(case)


def case_time(case: CaseFile) -> float:
    """When the answer was given, as lists take it (seconds since the epoch): an event that is dated after it was scored
    counts from then, or it would stand first for ever."""
    return min(case.record.event_time, case.record.scored_time)


def case_key(case: CaseFile) -> str:
    """48 hex digits: 32 of the event's id, 16 of its content. The same event, redelivered, has the same key."""
    return key_of(case.record.id, case.record.content_hash)


def key_of(event_id: str, content_hash: str) -> str:
    """The case key of that event and content."""
    return name_digest(event_id) + _digest(content_hash)[:16]


def name_digest(name: str) -> str:
    """32 hex digits of an event id or trace id, as exemplars on /metrics show a long one."""
    return _digest(name)[:32]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def terms_of(case: CaseFile) -> tuple[str, ...]:
    """What a case is found by, as `kind:value`; no text of the event is in it but values of its segment and labels."""
    record = case.record
    terms = [
        *(f"flag:{flag}" for flag in record.flags),
        f"fault:{record.fault}",
        *(f"segment:{name}={value}" for name, value in record.segment.items()),
        *(f"verdict:{label}" for label in dict.fromkeys(s.label for s in case.statements)),
        *(f"why:{why}" for why in case.why),
        *(f"label:{name}={value}" for name, value in record.labels.items()),
        *([f"asks:{sameness(case.question)}"] if case.question and case.question.strip() else []),
        *(f"says:{sameness(statement.text)}" for _, statement in wrong_statements(case)[:WRONG_STATEMENTS]),
    ]
    return tuple(dict.fromkeys(term[:TERM].replace("\n", " ") for term in terms))[:TERMS]


def wrong_statements(case: CaseFile) -> list[tuple[int, CaseStatement]]:
    """Contradicted ones, then those that were not found, with their numbers (from 0)."""
    return [(at, s) for at, s in worst_first(case.statements) if s.label in ("contradicted", "not_found")]


def sameness(text: str) -> str:
    """16 hex digits, the same for texts that differ in case, width, blanks and the mark at the end only.

    >>> sameness("You have 28  days.") == sameness("you have 28 days")
    True
    """
    return _digest(folded(text).strip(" .!?。！？…:;,，；："))[:16]


def searched_text(case: CaseFile) -> str:
    """What a text filter looks at: folded, and not longer than `SEARCHED` characters."""
    record = case.record
    parts = (record.id, record.trace_id, case.question, case.answer, case.reference)
    return folded("\n".join(part[:SEARCHED] for part in parts if part))[:SEARCHED]


def signature(text: str) -> int:
    """The pieces of `text` as `SIGNATURE_BITS` bits: folded text that stands in other folded text has no bit that the
    other has not. Most texts that do not hold it are told so without being looked at (a Bloom filter of three letters,
    or of two where they are not ASCII: Chinese words are short).
    """
    bits = 0
    for at in range(len(text) - 1):
        piece = text[at : at + 3]
        if not piece[:2].isascii():
            if piece[0].isascii() or piece[1].isascii():
                continue
            piece = piece[:2]
        elif len(piece) < 3 or not piece.isascii():
            continue
        bits |= 1 << (zlib.crc32(piece.encode("utf-8", "surrogatepass")) % SIGNATURE_BITS)
    return bits


def mentions(case: CaseFile, text: str) -> bool:
    """Whether `text` stands anywhere in the case: passages, conversation, reasons and labels too."""
    wanted = folded(text)
    return wanted in folded("\n".join(_texts(orjson.loads(orjson.dumps(case)))))


def newest_matching(
    cases: Iterable[CaseFile], wanted: CaseFilter, limit: int | None, verdicts: Mapping[str, str] | None = None
) -> list[CaseFile]:
    """Those of `cases` that match, newest event first; of the same event and content the last one counts. `verdicts`:
    by case key, what people said."""
    found: dict[str, CaseFile] = {}
    said = verdicts or {}
    for case in cases:
        key = case_key(case)
        found.pop(key, None)
        if wanted.matches(case, said.get(key)):
            found[key] = case
        if limit is not None and len(found) > 2 * limit + 1000:
            found = {case_key(newest): newest for newest in _newest_first(found.values())[:limit]}
    return _newest_first(found.values())[:limit]


def named(cases: Iterable[CaseFile], reference: str) -> list[CaseFile]:
    """Those of `cases` that `reference` names: an event id or a trace id (as it was logged, or as the record has it), a
    case key, or the digits that an exemplar on /metrics shows of a long id. Newest event first: one id may have had
    several contents."""
    wanted = {reference, *forms_of(reference)}

    def is_named(case: CaseFile) -> bool:
        names = [name for name in (case.record.id, case.record.trace_id) if name]
        return not wanted.isdisjoint((*names, *map(name_digest, names), case_key(case)))

    return _newest_first({case_key(case): case for case in cases if is_named(case)}.values())


def _newest_first(cases: Iterable[CaseFile]) -> list[CaseFile]:
    return sorted(cases, key=case_time, reverse=True)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for entry in value.values() for text in _texts(entry)]
    if isinstance(value, list):
        return [text for entry in value for text in _texts(entry)]
    return []


def folded(text: str) -> str:
    """Text as it is compared: compatibility forms, upper case and runs of blanks make no difference.

    >>> folded("Ｂｕｄｇｅｔ   2026")
    'budget 2026'
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def moment(text: str, now: float) -> float:
    """Seconds since the epoch of `2h` (ago; s, m, h, d) or of an ISO time (UTC where it names no zone).

    >>> moment("90m", 10_000.0)
    4600.0
    >>> moment("1970-01-02", 0.0)
    86400.0

    Raises:
        ValueError: neither.
    """
    ago = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", text.strip())
    if ago:
        return now - float(ago[1]) * _UNITS[ago[2]]
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text!r} is no time: write 30m, 2h, 7d (ago) or 2026-11-29T10:00") from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
