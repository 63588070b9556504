"""The list of cases: a page of them, newest first, or groups of those that ask, or say, the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from consumer.case_file import CaseFile, CaseStatement
from consumer.case_filter import case_key, sameness, wrong_statements
from consumer.case_parts import verdict_counts
from consumer.case_store import CaseStore
from consumer.label import Label
from consumer.pages.addresses import PER_PAGE, Query

GROUPED = 5000
"""The newest so many cases that match are put into groups."""
_KIND = {"question": "asks", "statement": "says"}


@dataclass(frozen=True, slots=True)
class Row:
    """A case of a list. `worst`: its worst statement, where one is wrong; `label`: what a person said; `says`, `asks`:
    the digests, and how many cases in all share them."""

    key: str
    case: CaseFile
    counts: Mapping[str, int]
    worst: CaseStatement | None
    label: Label | None
    says: str
    asks: str
    say_the_same: int
    ask_the_same: int


@dataclass(frozen=True, slots=True)
class Group:
    """So many of the cases that match share a question or a wrong statement; `row` is the newest of them."""

    number: int
    row: Row
    query: Query
    statement: CaseStatement | None


@dataclass(frozen=True, slots=True)
class Listing:
    """`next`: where the page goes on, if it does. `looked_at`: cases that were put into groups, 0 for a plain list."""

    rows: list[Row]
    groups: list[Group]
    next: Query | None
    looked_at: int = 0
    more: bool = False


def listed(store: CaseStore, query: Query, now: float) -> Listing:
    """A page of the cases that match.

    Raises:
        AddressError: a time of the query is none.
        CaseStoreError: Redis does not answer.
    """
    wanted = query.filter(now)
    if query.group:
        return _grouped(store, query, store.keys(wanted, GROUPED + 1))
    keys = store.keys(wanted, query.skip + PER_PAGE + 1)
    cases = store.get(keys[query.skip : query.skip + PER_PAGE])
    more = len(keys) > query.skip + PER_PAGE
    return Listing(rows_of(store, cases), [], _next(query, cases) if more and cases else None)


def rows_of(store: CaseStore, cases: list[CaseFile]) -> list[Row]:
    """With how many others each shares its question and its worst statement."""
    worst = [found[0][1] if (found := wrong_statements(case)) else None for case in cases]
    says = ["" if statement is None else sameness(statement.text) for statement in worst]
    asks = [sameness(case.question) if case.question and case.question.strip() else "" for case in cases]
    sizes = store.sizes([f"says:{digest}" for digest in says] + [f"asks:{digest}" for digest in asks])
    say, ask = sizes[: len(cases)], sizes[len(cases) :]
    labels = store.labels(cases)
    keys = [case_key(case) for case in cases]
    return [
        Row(key, case, verdict_counts(case), worst[at], labels.get(key), says[at], asks[at], say[at], ask[at])
        for at, (key, case) in enumerate(zip(keys, cases, strict=True))
    ]


def _next(query: Query, cases: list[CaseFile]) -> Query:
    last = cases[-1].record.event_time
    same = sum(case.record.event_time == last for case in cases)
    return replace(query, before=last, skip=same + (query.skip if query.before == last else 0))


def _grouped(store: CaseStore, query: Query, keys: list[str]) -> Listing:
    more, keys = len(keys) > GROUPED, keys[:GROUPED]
    kind = _KIND[query.group]
    numbers: Counter[str] = Counter()
    newest: dict[str, str] = {}
    for key, terms in zip(keys, store.terms(keys), strict=True):
        for term in terms:
            if term.startswith(f"{kind}:"):
                digest = term[len(kind) + 1 :]
                numbers[digest] += 1
                newest.setdefault(digest, key)
    largest = numbers.most_common(PER_PAGE)
    found = {row.key: row for row in rows_of(store, store.get(list({newest[digest] for digest, _ in largest})))}
    groups = []
    for digest, number in largest:
        row = found.get(newest[digest])
        if row is None:
            continue
        plain = replace(query.first_page(), group="")
        chosen = replace(plain, asks=digest) if kind == "asks" else replace(plain, says=digest)
        said = next((s for _, s in wrong_statements(row.case) if sameness(s.text) == digest), None)
        groups.append(Group(number, row, chosen, said if kind == "says" else None))
    return Listing([], groups, None, len(keys), more)
