"""The list of cases: a page of them, newest first, or groups of those that ask, or say, the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from consumer.case_file import CaseFile, CaseStatement
from consumer.case_filter import case_key, case_time, sameness, wrong_statements
from consumer.case_parts import verdict_counts
from consumer.case_store import CaseStore
from consumer.label import Label
from consumer.pages.addresses import PER_PAGE, Query
from consumer.pages.short_cases import few_at_a_time, shortened

GROUPED = 5000
"""The newest so many cases that match are put into groups."""
_KIND = {"question": "asks", "statement": "says"}


@dataclass(frozen=True, slots=True)
class Row:
    """A case of a list, without most of its text. `worst`: its worst statement, where one is wrong; `label`: what a
    person said; `says`, `asks`: the digests, and how many cases in all share them."""

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
    """So many of the cases that match share a question or a wrong statement; `row` is the newest of them, `since` the
    time of the oldest answer (seconds since the epoch)."""

    number: int
    row: Row
    query: Query
    statement: CaseStatement | None
    since: float | None


@dataclass(frozen=True, slots=True)
class Listing:
    """`next`: where the page goes on, if it does. `looked_at`: cases that were put into groups, 0 for a plain list;
    `more`: there are older ones. `in_all`: groups on all pages."""

    rows: list[Row]
    groups: list[Group]
    next: Query | None
    looked_at: int = 0
    more: bool = False
    in_all: int = 0


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
    rows = rows_of(store, few_at_a_time(store, keys[query.skip : query.skip + PER_PAGE]))
    more = len(keys) > query.skip + PER_PAGE
    return Listing(rows, [], _next(query, rows) if more and rows else None)


def rows_of(store: CaseStore, cases: Iterable[CaseFile]) -> list[Row]:
    """With how many others each shares its question and its worst statement."""
    rows = [_row(case) for case in cases]
    sizes = store.sizes([f"says:{row.says}" for row in rows] + [f"asks:{row.asks}" for row in rows])
    labels = store.labels([row.case for row in rows])
    return [
        replace(row, label=labels.get(row.key), say_the_same=say, ask_the_same=ask)
        for row, say, ask in zip(rows, sizes[: len(rows)], sizes[len(rows) :], strict=True)
    ]


def _row(case: CaseFile) -> Row:
    """As far as the case itself tells."""
    worst = found[0][1] if (found := wrong_statements(case)) else None
    asks = sameness(case.question) if case.question and case.question.strip() else ""
    says = "" if worst is None else sameness(worst.text)
    return Row(case_key(case), shortened(case), verdict_counts(case), worst, None, says, asks, 0, 0)


def _next(query: Query, rows: Sequence[Row]) -> Query:
    last = case_time(rows[-1].case)
    same = sum(case_time(row.case) == last for row in rows)
    return replace(query, before=last, skip=same + (query.skip if query.before == last else 0))


def _grouped(store: CaseStore, query: Query, keys: list[str]) -> Listing:
    more, keys = len(keys) > GROUPED, keys[:GROUPED]
    kind = _KIND[query.group]
    numbers: Counter[str] = Counter()
    newest: dict[str, str] = {}
    oldest: dict[str, str] = {}
    for key, terms in zip(keys, store.terms(keys), strict=True):
        for term in terms:
            if term.startswith(f"{kind}:"):
                digest = term[len(kind) + 1 :]
                numbers[digest] += 1
                newest.setdefault(digest, key)
                oldest[digest] = key
    largest = numbers.most_common()[query.skip : query.skip + PER_PAGE]
    wanted = list(dict.fromkeys(newest[digest] for digest, _ in largest))
    found = {row.key: row for row in rows_of(store, few_at_a_time(store, wanted))}
    since = store.event_times([oldest[digest] for digest, _ in largest])
    groups = []
    for (digest, number), begun in zip(largest, since, strict=True):
        row = found.get(newest[digest])
        if row is None:
            continue
        plain = replace(query.first_page(), group="")
        chosen = replace(plain, asks=digest) if kind == "asks" else replace(plain, says=digest)
        said = next((s for _, s in wrong_statements(row.case) if sameness(s.text) == digest), None)
        groups.append(Group(number, row, chosen, said if kind == "says" else None, begun))
    onward = query.skip + PER_PAGE
    return Listing(
        [], groups, replace(query, skip=onward) if onward < len(numbers) else None, len(keys), more, len(numbers)
    )
