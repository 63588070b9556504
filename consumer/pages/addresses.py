"""The addresses of the pages: which cases a query string asks for, and the query string of a filter."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote, urlencode

from consumer.case_filter import CaseFilter, moment
from consumer.settings_rules import segment_conditions
from metrics.flags import Fault, Flag
from metrics.judge import Label
from metrics.label_names import label_name

PER_PAGE = 50
GROUPINGS = ("question", "statement")
LABELS = ("good", "bad", "none")
FLAGS = tuple(flag.value for flag in Flag)
FAULTS = tuple(fault.value for fault in Fault)
VERDICTS = tuple(label.value for label in Label)
WHY = ("flagged", "audit")
_DIGEST = re.compile(r"[0-9a-f]{16}")
_LONGEST = 500


class AddressError(Exception):
    """A query string that says nothing that can be looked for; one line a fault."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a list is asked to show, as it stands in the address. `before` and `skip` are the place of a page: cases of
    that time (seconds) and older ones, without the first `skip` of that very time."""

    segment: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    text: str = ""
    asks: str = ""
    says: str = ""
    group: str = ""
    before: float | None = None
    skip: int = 0

    def filter(self, now: float) -> CaseFilter:
        """The cases that are meant, at the time `now` (seconds).

        Raises:
            AddressError: a time that is none.
        """
        since, until = _moment("from", self.since, now), _moment("to", self.until, now)
        if since is not None and until is not None and since > until:
            raise AddressError(f"from {self.since} is later than to {self.until}: exchange them")
        if self.before is not None:
            place = math.nextafter(self.before, math.inf)
            until = place if until is None else min(until, place)
        return CaseFilter(
            since=since,
            until=until,
            flags=self.flags,
            faults=self.faults,
            segment=self.segment,
            verdicts=self.verdicts,
            why=self.why,
            text=self.text,
            labels=self.labels,
            asks=self.asks,
            says=self.says,
            said=self.said,
        )

    def parameters(self) -> list[tuple[str, str]]:
        """As they stand in an address; what is empty is left out."""
        found = [
            ("segment", conditions(self.segment)),
            *(("flag", flag) for flag in self.flags),
            *(("fault", fault) for fault in self.faults),
            *(("verdict", verdict) for verdict in self.verdicts),
            *(("why", why) for why in self.why),
            ("labels", conditions(self.labels)),
            *(("label", said) for said in self.said),
            ("from", self.since),
            ("to", self.until),
            ("q", self.text),
            ("asks", self.asks),
            ("says", self.says),
            ("group", self.group),
            ("before", "" if self.before is None else repr(self.before)),
            ("skip", str(self.skip or "")),
        ]
        return [(name, value) for name, value in found if value]

    def address(self, path: str = "/cases") -> str:
        parameters = self.parameters()
        return f"{path}?{urlencode(parameters)}" if parameters else path

    def first_page(self) -> Query:
        return replace(self, before=None, skip=0)

    def with_group(self, group: str) -> Query:
        return replace(self.first_page(), group=group)

    @property
    def segment_text(self) -> str:
        return conditions(self.segment)

    @property
    def labels_text(self) -> str:
        return conditions(self.labels)

    @property
    def chooses(self) -> bool:
        """Not simply everything."""
        return bool(replace(self.first_page(), group="").parameters())


def read_query(parameters: Iterable[tuple[str, str]], keys: Collection[str]) -> Query:
    """The query of an address. Parameters that nobody knows are ignored: other tools add their own. `keys`: those of
    segments; as labels of series they may have another name, by which alerts call them.

    Raises:
        AddressError: a value that cannot be.
    """
    values: dict[str, list[str]] = {}
    for name, value in parameters:
        if value.strip():
            values.setdefault(name, []).append(value.strip()[:_LONGEST])

    def last(name: str) -> str:
        return values.get(name, [""])[-1]

    faults: list[str] = []
    query = Query(
        segment=_conditions("segment", values, faults),
        flags=_words("flag", FLAGS, values, faults),
        faults=_words("fault", FAULTS, values, faults),
        verdicts=_words("verdict", VERDICTS, values, faults),
        why=_words("why", WHY, values, faults),
        labels=_conditions("labels", values, faults),
        said=_words("label", LABELS, values, faults),
        since=last("from"),
        until=last("to"),
        text=last("q"),
        asks=_digest("asks", last("asks"), faults),
        says=_digest("says", last("says"), faults),
        group=_one_of("group", last("group"), GROUPINGS, faults),
        before=_number(last("before"), faults),
        skip=int(last("skip")) if last("skip").isdecimal() and len(last("skip")) < 7 else 0,
    )
    of_series = {label_name(key): key for key in keys}
    query = replace(query, segment={of_series.get(name, name): value for name, value in query.segment.items()})
    faults += [
        f"segment: {name!r} is no key of a segment (there are: {', '.join(keys)}); by another label it is "
        f"labels={name}={value}"
        for name, value in query.segment.items()
        if name not in keys
    ]
    if faults:
        raise AddressError("; ".join(faults))
    return query


def case_address(reference: str) -> str:
    return f"/cases/{quote(reference, safe='')}"


def trace_address(reference: str) -> str:
    return f"/trace/{quote(reference, safe='')}"


def conditions(named: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in named.items())


def _conditions(name: str, values: Mapping[str, list[str]], faults: list[str]) -> dict[str, str]:
    """`all` and an empty value choose nothing: that is how series of all segments together are named."""
    found: dict[str, str] = {}
    for value in values.get(name, ()):
        parts = [part for part in value.split(",") if part.partition("=")[2].strip() not in ("", "all")]
        unreadable = [part for part in value.split(",") if part.strip() not in ("", "all") and "=" not in part]
        if unreadable:
            faults.append(f"{name}: {value!r} must read name=value,name=value")
        elif parts:
            try:
                found |= segment_conditions(",".join(parts))
            except ValueError as error:
                faults.append(f"{name}: {error}")
    return found


def _words(name: str, known: tuple[str, ...], values: Mapping[str, list[str]], faults: list[str]) -> tuple[str, ...]:
    """Words of a closed list: a mistyped one must not look as if there were no cases."""
    words = [word.strip() for value in values.get(name, ()) for word in value.split(",") if word.strip()]
    return tuple(word for word in dict.fromkeys(words) if _one_of(name, word, known, faults))


def _one_of(name: str, value: str, known: tuple[str, ...], faults: list[str]) -> str:
    if value and value not in known:
        faults.append(f"{name}: {value!r} is none of {', '.join(known)}")
        return ""
    return value


def _digest(name: str, value: str, faults: list[str]) -> str:
    if value and not _DIGEST.fullmatch(value):
        faults.append(f"{name}: 16 hex digits are expected, as in the links of a list")
        return ""
    return value


def _number(value: str, faults: list[str]) -> float | None:
    if not value:
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        faults.append(f"before: {value!r} is no time in seconds")
        return None
    return number


def _moment(name: str, text: str, now: float) -> float | None:
    if not text:
        return None
    try:
        found = moment(text, now)
    except (ValueError, OverflowError) as error:
        raise AddressError(f"{name}: {error}") from None
    return found
