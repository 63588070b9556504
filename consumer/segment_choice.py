"""Segments that somebody asks for, on the command line or a page, against those that there are.

A mistyped one must not look as if there were no answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from consumer.case_file import CaseFile
from consumer.inert_text import inert
from consumer.settings_rules import segment_conditions
from metrics.answer import OTHER

SHOWN = 20
"""Values of a dimension that are named."""


def chosen_segment(text: str, allow: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The conditions of `app=hr-helpdesk,lang=zh`; every dimension is one of `allow`.

    Raises:
        ValueError: not a list of conditions, or no such dimension; one line that says which there are.
    """
    wanted = segment_conditions(text)
    check_dimensions(wanted, allow)
    return wanted


def check_dimensions(wanted: Mapping[str, str], there: Mapping[str, Iterable[str]]) -> None:
    """Raises ValueError where a dimension of `wanted` is none of those there."""
    for name in wanted:
        if name not in there:
            raise ValueError(f"--segment: no dimension {name!r} (there are: {', '.join(map(inert, there)) or 'none'})")


def unlisted(segment: Mapping[str, str], allow: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each value of a segment that records get no longer, or never did."""
    return [
        f"segment: {name}={value} is not in segments.allow (there are: {', '.join((*allow[name], OTHER))}), "
        "so no case has it but those from before a change of the settings"
        for name, value in segment.items()
        if value not in (*allow[name], OTHER)
    ]


def segments_of(cases: Iterable[CaseFile]) -> dict[str, list[str]]:
    """The dimensions that the cases have, each with its values in alphabetical order."""
    found: dict[str, set[str]] = {}
    for case in cases:
        for name, value in case.record.segment.items():
            found.setdefault(name, set()).add(value)
    return {name: sorted(values) for name, values in found.items()}


def absent(segment: Mapping[str, str], there: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each value of a segment that no case of a file has."""
    return [
        f"no case of the file has {inert(name)}={inert(value)} (there are: {_listed(there[name])})"
        for name, value in segment.items()
        if value not in there[name]
    ]


def _listed(values: Sequence[str]) -> str:
    return ", ".join(map(inert, values[:SHOWN])) + (", ..." if len(values) > SHOWN else "")
