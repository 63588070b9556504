"""Texts that Python printed: list and dict literals, `Document(page_content=...)`, `page_content='...' metadata={...}`.

People log `json.dumps(result, default=str)` and `str(documents)`; the wrapper must not be judged as part of a passage.
Nothing is evaluated: this is a small reader of literals, calls and keyword pairs, with a cap on nesting.
"""

from __future__ import annotations

import re
from typing import Any

MAX_NESTING = 40
MAX_DIGITS = 309
"""Characters of a whole number from which on it is read as a float."""
CLASS = "__class__"
"""Key under which the name of a printed object's class is kept, e.g. `Document`."""

_SPACE = re.compile(r"[\s]*")
_STRING = re.compile(
    r"[bBrRuU]{0,2}('''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'|\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*\")",
    re.DOTALL,
)
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_PAIR = re.compile(r"([A-Za-z_]\w*)=")
_ARGUMENT = re.compile(r"([A-Za-z_]\w*)(?:=|:\s*)")
"""Inside a call: some libraries print `content: '...'`."""
_BARE = re.compile(r"[\w.+-]+(?=[,)])")
"""An argument without quotes: a dtype, an id, a time."""
_OPAQUE = re.compile(r"<[^<>\n]{1,300}>")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([0-7]{1,3})|(.))", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "\n": ""}
_CONSTANTS: dict[str, Any] = {"None": None, "True": True, "False": False, "nan": None, "inf": None, "NaN": None,
                              "null": None, "true": True, "false": False, "Ellipsis": None}  # fmt: skip
_START = re.compile(r"[\[({]|[A-Za-z_][\w.]*[(=]")
_ONE_VALUE = {"UUID", "Decimal", "ObjectId", "PosixPath", "Path", "tensor", "float16", "float32", "float64", "int32",
              "int64", "str_"}  # fmt: skip
"""Calls that show one value: `np.float64(0.9)`, `tensor(0.9)`."""
_CLOSING = {"[": "]", "(": ")", "{": "}"}


class NotARepr(ValueError):
    """The text is not something that Python printed."""


def read_repr(text: str) -> Any:
    """The value that `text` shows: lists, dicts, texts, numbers; a printed object is a dict with `CLASS`.

    >>> read_repr("[Document(page_content='Hi', metadata={'source': 'a.txt'})]")
    [{'__class__': 'Document', 'page_content': 'Hi', 'metadata': {'source': 'a.txt'}}]
    >>> read_repr("page_content='Hi' metadata={}")
    {'page_content': 'Hi', 'metadata': {}}

    Raises:
        NotARepr: prose, or anything else that is not a whole literal.
    """
    stripped = text.strip()
    if not _START.match(stripped):
        raise NotARepr
    if _PAIR.match(stripped):
        return _pairs(stripped)
    value, end = _value(stripped, 0, 0)
    if end != len(stripped):
        raise NotARepr
    return value


def _pairs(text: str) -> dict[str, Any]:
    """`name=value name=value`, as pydantic prints; what cannot be read after the first pair is left out."""
    found: dict[str, Any] = {}
    at = 0
    while at < len(text):
        match = _PAIR.match(text, at)
        if match is None:
            break
        try:
            value, at = _value(text, match.end(), 0)
        except NotARepr:
            break
        found[match.group(1)] = value
        at = _skip(text, at)
    # One unreadable tail is common (an object without a literal repr); a first pair that is no text is prose.
    if not any(isinstance(value, str) for value in found.values()):
        raise NotARepr
    return found


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    if depth > MAX_NESTING:
        raise NotARepr
    at = _skip(text, at)
    head = text[at : at + 1]
    if head in _CLOSING and head:
        return _container(text, at, depth)
    string = _STRING.match(text, at)
    if string:
        return _unescaped(string), string.end()
    number = _NUMBER.match(text, at)
    if number:
        return _number(number.group()), number.end()
    opaque = _OPAQUE.match(text, at)
    if opaque:
        return opaque.group(), opaque.end()
    name = _NAME.match(text, at)
    if name is None:
        raise NotARepr
    if text[name.end() : name.end() + 1] == "(":
        return _call(text, name.group(), name.end(), depth)
    if name.group() in _CONSTANTS:
        return _CONSTANTS[name.group()], name.end()
    raise NotARepr


def _number(literal: str) -> int | float | None:
    try:
        return int(literal) if len(literal) < MAX_DIGITS else float(literal)
    except ValueError:
        try:
            return float(literal)
        except ValueError:
            raise NotARepr from None


def _unescaped(match: re.Match[str]) -> str:
    literal = match.group(1)
    body = literal[3:-3] if literal[:3] in ("'''", '"""') else literal[1:-1]
    prefix = match.group()[: match.start(1) - match.start()].lower()
    if "\\" not in body or "r" in prefix:
        return body

    def plain(escape: re.Match[str]) -> str:
        short, long, byte, octal, other = escape.groups()
        if other is not None:
            return _SIMPLE.get(other, other if other in "\\'\"" else "\\" + other)
        code = int(short or long or byte, 16) if octal is None else int(octal, 8)
        return chr(code) if code < 0x110000 else "\ufffd"

    return _ESCAPE.sub(plain, body)


def _container(text: str, at: int, depth: int) -> tuple[Any, int]:
    closing = _CLOSING[text[at]]
    mapping: dict[str, Any] = {}
    items: list[Any] = []
    is_mapping = False
    at = _skip(text, at + 1)
    while text[at : at + 1] != closing:
        value, at = _value(text, at, depth + 1)
        colon = _skip(text, at) if closing == "}" else at
        if closing == "}" and text[colon : colon + 1] == ":":
            is_mapping = True
            inner, at = _value(text, colon + 1, depth + 1)
            mapping[str(value)] = inner
        else:
            items.append(value)
        at = _separator(text, at, closing)
    if closing == "}" and (is_mapping or not items):
        if items:
            raise NotARepr
        return mapping, at + 1
    if closing == ")" and len(items) == 1 and not isinstance(items[0], (list, dict, str)):
        raise NotARepr
    return items, at + 1


def _separator(text: str, at: int, closing: str) -> int:
    """Past a comma; numpy prints arrays of texts with white space alone between them."""
    after = _skip(text, at)
    if text[after : after + 1] == ",":
        return _skip(text, after + 1)
    if after >= len(text) or (text[after] != closing and after == at):
        raise NotARepr
    return after


def _call(text: str, name: str, at: int, depth: int) -> tuple[Any, int]:
    found: dict[str, Any] = {CLASS: name.rpartition(".")[2]}
    positional: list[Any] = []
    at = _skip(text, at + 1)
    while text[at : at + 1] != ")":
        pair = _ARGUMENT.match(text, at)
        if pair and text[pair.end() : pair.end() + 1] != "=":
            bare = _BARE.match(text, pair.end())
            if bare and bare.group() not in _CONSTANTS and not _NUMBER.fullmatch(bare.group()):
                found[pair.group(1)], at = bare.group(), bare.end()
            else:
                found[pair.group(1)], at = _value(text, pair.end(), depth + 1)
        else:
            value, at = _value(text, at, depth + 1)
            positional.append(value)
        at = _separator(text, at, ")")
    if name.rpartition(".")[2] in ("array", "deque", "tuple", "list", "set", "frozenset", "OrderedDict", "dict"):
        return (positional[0] if positional else []), at + 1
    if name.rpartition(".")[2] in _ONE_VALUE and positional:
        return positional[0], at + 1
    if positional:
        found["__arguments__"] = positional
    return found, at + 1
