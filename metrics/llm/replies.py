"""What a chat model replied, as values: tolerant of how it is wrapped, strict about what it says (field cases 23, 24).

Fences, thinking tags, talk around the JSON, extra keys and `\\'` are taken in stride; of several complete values the
last that fits counts. What cannot be read is None, never a guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from metrics.judge import Label

LONGEST = 100_000
"""Characters of a reply that are looked at."""
MOST = 2000
"""Places where a value may begin that are tried."""

_THINKING = re.compile(r"<(think|thinking|thought|reasoning|reflection)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"</(?:think|thinking|thought|reasoning|reflection)>", re.IGNORECASE)
_THOUGHT_BEGIN = re.compile(r"<(?:think|thinking|thought|reasoning|reflection)>", re.IGNORECASE)
_OPENER = re.compile(r"[{\[]")
_QUOTE_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\'")
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_NUMBER = re.compile(r"\d{1,6}")
_DECODER = json.JSONDecoder(strict=False)
_MARKS = re.compile(r"[\s\W_]+")

_LABELS = {
    Label.SUPPORTED: "supported support supports yes true 1 entailed entailment fullysupported 支持 支持的 是 一致",
    Label.CONTRADICTED: "contradicted contradict contradicts contradiction contradictory refuted 矛盾 相反 冲突 不一致",
    Label.NOT_FOUND: "notfound no false 0 notsupported unsupported notmentioned neutral unknown notstated "
    "partiallysupported 未提到 没有提到 未提及 未找到 不支持 否",
}
_LABEL_OF = {word: label for label, words in _LABELS.items() for word in words.split()}
_PROBLEMS = {
    **dict.fromkeys(("none", "no", "nothing", "noproblem", "false", "0", "没有", "没有问题", "无"), Label.SUPPORTED),
    **dict.fromkeys(("missing", "notfound", "notstated", "缺少", "缺失", "没有提到"), Label.NOT_FOUND),
    **dict.fromkeys(("different", "contradicted", "contradiction", "不同", "矛盾"), Label.CONTRADICTED),
}
_YES = frozenset(["yes", "true", "1", "y", "是", "有", "有用", "对"])
_NO = frozenset(["no", "false", "0", "n", "否", "没有", "无", "无用", "不是", "不"])


def spoken(text: str) -> str:
    """The reply without the model's thinking; nothing where the thinking never ended.

    >>> spoken('<think>{"verdict": "supported"}</think> {"verdict": "not_found"}').strip()
    '{"verdict": "not_found"}'
    """
    text = _THINKING.sub(" ", text[:LONGEST])
    ends = list(_THOUGHT_END.finditer(text))
    if ends:
        text = text[ends[-1].end() :]
    begin = _THOUGHT_BEGIN.search(text)
    return text[: begin.start()] if begin else text


def values_of(text: str) -> list[Any]:
    """The JSON objects and arrays that are complete in the reply, outermost, in order. Of one that is cut, the complete
    ones inside. Never raises.

    >>> values_of('```json\\n{"a": [1, 2]}\\n``` and {"b": 3')
    [{'a': [1, 2]}]
    """
    said = spoken(text)
    plain = list(_decoded(said))
    mended = _TRAILING_COMMA.sub(r"\1", _QUOTE_ESCAPE.sub(r"\1'", said))
    if mended == said:
        return plain
    return max(plain, list(_decoded(mended)), key=_weight)


def _weight(values: Sequence[Any]) -> int:
    """How much of a text was read: a value that was mended whole counts more than its parts."""
    return max((len(str(value)) for value in values), default=0)


def _decoded(text: str) -> Iterator[Any]:
    at = 0
    for _ in range(MOST):
        opener = _OPENER.search(text, at)
        if opener is None:
            return
        try:
            value, at = _DECODER.raw_decode(text, opener.start())
        except (ValueError, RecursionError):
            at = opener.end()
            continue
        yield value


def last_object(text: str, *keys: str) -> dict[str, Any] | None:
    """The last complete object of the reply that has all these keys, also inside of a list."""
    found = None
    for value in values_of(text):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict) and all(key in item for key in keys):
                found = item
    return found


def items_of(text: str, key: str, *needed: str) -> list[dict[str, Any]] | None:
    """The items of the last list under `key` (or bare list); where there is none, the complete items of a cut one.

    An item has all `needed` keys; others are left out. None: nothing that could be read as such a list.
    """
    values = values_of(text)
    for value in reversed(values):
        for listed in _lists(value, key):
            items = [{"id": k, **v} for k, v in listed.items()] if isinstance(listed, dict) else listed
            fitting = [item for item in items if isinstance(item, dict) and all(n in item for n in needed)]
            if fitting or not items:
                return fitting
    loose = [value for value in values if isinstance(value, dict) and all(n in value for n in needed)]
    return loose or None


def _lists(value: Any, key: str) -> Iterator[Any]:
    """Where the items may be: under the key, under any other key, or the value itself; an object of objects has ids for
    keys."""
    if isinstance(value, list):
        yield value
    elif isinstance(value, dict):
        for held in [value.get(key), *(v for k, v in value.items() if k != key)]:
            if isinstance(held, list) or (isinstance(held, dict) and all(isinstance(v, dict) for v in held.values())):
                yield held


def by_id(items: Sequence[Mapping[str, Any]], count: int) -> dict[int, Mapping[str, Any]]:
    """Items by their id, 1 to `count`. Items without any id count in order if there are exactly `count` of them.

    Ids that were not asked for are left out; one that came twice with different contents is left out too.
    """
    if len(items) == count and all("id" not in item for item in items):
        return dict(enumerate(items, start=1))
    found: dict[int, Mapping[str, Any]] = {}
    twice: set[int] = set()
    for item in items:
        number = number_of(item.get("id"))
        if number is None or not 1 <= number <= count:
            continue
        if number in found and found[number] != item:
            twice.add(number)
        found[number] = item
    return {number: item for number, item in found.items() if number not in twice}


def number_of(value: Any) -> int | None:
    """A whole number however it is written: 3, 3.0, "3", "[3]", "claim 3"."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    found = _NUMBER.findall(value) if isinstance(value, str) else []
    return int(found[0]) if len(found) == 1 else None


def label_of(value: Any) -> Label | None:
    """A verdict however it is written: "supported", "Not found.", "1", 1, true, "Yes", 支持; None: it is none.

    A bare no (0, false) says that the passages do not support the statement, and not that they contradict it.
    """
    return _LABEL_OF.get(_word(value))


def problem_of(value: Any) -> Label | None:
    """What is wrong with a claim: "none", "missing" or "different", however it is written; None: none of these."""
    return _PROBLEMS.get(_word(value))


def truth_of(value: Any) -> bool | None:
    """A yes or no however it is written; None: it is neither."""
    word = _word(value)
    return True if word in _YES else False if word in _NO else None


def text_of(value: Any, most: int = 500) -> str:
    """A short text on one line; nothing where the value is no text."""
    return " ".join(value.split())[:most] if isinstance(value, str) else ""


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "1" if value == 1 else "0" if value == 0 else ""
    word = value[:60].strip() if isinstance(value, str) else ""
    return {"1.0": "1", "0.0": "0"}.get(word) or _MARKS.sub("", word).casefold()
