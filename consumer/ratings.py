"""Human ratings in the rows of a labelled file: a number each, higher is better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import jmespath
import orjson

RATINGS = ("rating", "label", "score", "human_score", "human_rating", "ratings", "verdict", "feedback")
"""Where a rating is looked for, unless the caller names the field; the first that every rated row could have."""
GOOD = frozenset({"good", "yes", "true", "correct", "supported", "faithful", "pass", "up", "好", "对", "是", "正确"})
BAD = frozenset({"bad", "no", "false", "incorrect", "wrong", "unsupported", "unfaithful", "fail", "down", "坏", "错",
                 "否", "错误"})  # fmt: skip
MOST_FIELDS = 30
GROUPS = ("group", "group_id", "question_id", "document_id")


class RatingError(Exception):
    """The ratings cannot be used; one line that says why and what is expected."""


@dataclass(frozen=True, slots=True)
class Rated:
    """What people said about one row, and which rows belong together (same question or document)."""

    rating: float
    group: str | None


class RatingReader:
    """Reads rating and group off a row by JMESPath.

    Raises (on construction):
        RatingError: an expression that is none.
    """

    def __init__(self, rating: str | None, group: str | None) -> None:
        self._rating = None if rating is None else _compiled(rating)
        self._group = None if group is None else _compiled(group)
        self.field = rating
        """The field that is read; found with the first row that has one where the caller named none."""
        self.fields: dict[str, None] = {}
        """Fields of the rows read so far, at most `MOST_FIELDS`, in the order of their first row."""
        self.grouped = False
        """Some rated row has a group."""

    def read(self, row: Mapping[str, Any]) -> Rated | None:
        """The rating of a row; None where it has none.

        Raises:
            RatingError: a rating that is neither a number nor a word for good or bad.
        """
        if len(self.fields) < MOST_FIELDS:
            self.fields |= dict.fromkeys(islice(row, MOST_FIELDS - len(self.fields)))
        if self._rating is None:
            named = next((name for name in RATINGS if row.get(name) is not None), None)
            if named is None:
                return None
            self._rating, self.field = _compiled(named), named
        rating = number_of(self._rating.search(row))
        if rating is None:
            return None
        if self._group is not None:
            found = self._group.search(row)
        else:
            found = next((row[name] for name in GROUPS if row.get(name) is not None), None)
        self.grouped |= found is not None
        return Rated(rating, None if found is None else str(found))


def row_of(line: bytes) -> dict[str, Any] | None:
    """The JSON object of a line; None where it is none."""
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return row if isinstance(row, dict) else None


def number_of(value: Any) -> float | None:
    """A rating as a number: a number, a boolean, a word for good (1) or bad (0), or the mean of a list of them.

    >>> [number_of(value) for value in (4, True, "bad", "3.5", [1, 0, 1, 1])]
    [4.0, 1.0, 0.0, 3.5, 0.75]

    Raises:
        RatingError: anything else but None.
    """
    if value is None:
        return None
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return float(value)
    if isinstance(value, str):
        word = value.strip().casefold()
        if word in GOOD or word in BAD:
            return float(word in GOOD)
        try:
            return number_of(float(word))
        except ValueError:
            pass
    if isinstance(value, list) and value:
        each = [number for number in map(number_of, value) if number is not None]
        return sum(each) / len(each) if each else None
    raise RatingError(f"{str(value)[:60]!r} is no rating: a number, true or false, good or bad, or a list of them")


def _compiled(expression: str) -> Any:
    try:
        return jmespath.compile(expression)
    except jmespath.exceptions.JMESPathError as error:
        raise RatingError(f"{expression!r} is no JMESPath expression: {str(error).splitlines()[0]}") from None
