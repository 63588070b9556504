"""A text that holds a structure (JSON, or what Python printed) opened; every other text left as it is."""

from __future__ import annotations

from typing import Any

from consumer.decoding.json_bytes import HARD_DEPTH, Read, read_json
from consumer.decoding.python_repr import NotARepr, read_repr
from consumer.decoding.reasons import DecodeError, Repair

MAX_REPR = 2_000_000
"""Characters of a text that is tried as a Python literal."""
_REPR_HEADS = ("[", "(", "{", "array(", "page_content=", "content=", "Document(", "text=", "id=", "metadata=")


def opened(value: Any) -> Any:
    """The list or object that a text holds as JSON, else `value` itself. Duplicate keys inside: the last wins."""
    if not isinstance(value, str):
        return value
    head = value.lstrip()[:1]
    if head not in ("{", "[", '"') or not head:
        return value
    try:
        inner = read_json(value.encode("utf-8", "surrogatepass"), HARD_DEPTH, Read(None))
    except DecodeError:
        return value
    if isinstance(inner, str) and inner.lstrip()[:1] in ("{", "["):
        try:
            inner = read_json(inner.encode("utf-8", "surrogatepass"), HARD_DEPTH, Read(None))
        except DecodeError:
            return value
    return inner if isinstance(inner, (dict, list)) else value


def unprinted(value: Any, repairs: list[str]) -> Any:
    """As `opened`, and Python's own printed lists and objects too (noted as a repair)."""
    inner = opened(value)
    if inner is not value or not isinstance(value, str) or len(value) > MAX_REPR:
        return inner
    head = value.lstrip()
    if not head.startswith(_REPR_HEADS) and "(" not in head[:60]:
        return value
    try:
        printed = read_repr(head)
    except NotARepr:
        return value
    if isinstance(printed, (dict, list)):
        repairs.append(Repair.PYTHON_REPR)
        return printed
    return value
