"""Bytes to a JSON document: framing, compression, encoding, numbers, duplicate keys, depth.

orjson reads first. Where it refuses, where a key may stand twice, or where it may have rounded a whole number beyond
64 bits (an id) to a float, the standard library reads again with hooks; else the two give the same document for every
input that both accept (tests/unit/test_decode_json.py).
"""

from __future__ import annotations

import json
import math
import re
import zlib
from dataclasses import dataclass, field
from typing import Any

import orjson

from consumer.decoding.python_repr import NotARepr, read_repr
from consumer.decoding.reasons import DecodeError, Refusal, Repair

HARD_DEPTH = 400
"""Nesting that is refused whatever the settings say: the standard library's reader recurses."""
MAX_PRINTED = 2_000_000
"""Characters of a record that is tried as a printed dict."""
MAX_DIGITS = 309
"""Characters of a whole number from which on it may be beyond a float's range (1.8e308)."""
MAX_PREFIX = 2000
"""Bytes of plain text (a log line's head) that may stand in front of the JSON object."""

_KEY = re.compile(rb'"[ \t\r\n]*:')
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_COMPRESSED = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xff\x06\x00\x00sNaPpY": "snappy",
    b"\x82SNAPPY\x00": "snappy",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
    b"Obj\x01": "an Avro file",
    b"PAR1": "Parquet",
}


@dataclass(slots=True)
class Read:
    """A document and what its reading told: `schema_id` of a registry header, repairs, keys that stood twice in one
    object with different values."""

    document: Any
    schema_id: str | None = None
    repairs: list[str] = field(default_factory=list)
    conflicts: set[str] = field(default_factory=set)


def read_bytes(raw: bytes, *, max_bytes: int, max_depth: int, gzip_allowed: bool) -> Read:
    """Read one record value.

    Raises:
        DecodeError: empty, too_large, too_deep, unsupported_format, corrupt_gzip, bad_encoding or not_json.
    """
    if not raw:
        raise DecodeError(Refusal.EMPTY, "the value has no bytes")
    if len(raw) > max_bytes:
        raise DecodeError(Refusal.TOO_LARGE, f"{len(raw)} bytes; decode.max_bytes is {max_bytes}")
    read = Read(None)
    if raw[0] != 0x7B:  # "{"
        raw = _unframed(raw, read, max_bytes, gzip_allowed)
    read.document = read_json(raw, max_depth, read, prefix_allowed=True)
    return read


def read_json(raw: bytes, max_depth: int, read: Read, *, prefix_allowed: bool = False) -> Any:
    """A JSON document from UTF-8 bytes; repairs and conflicting duplicate keys are noted in `read`."""
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _read_slowly(raw, max_depth, read, prefix_allowed)
    keys, depth, rounded = _measured(document)
    if depth > min(max_depth, HARD_DEPTH):
        raise _too_deep(depth, max_depth)
    if rounded or keys != len(_KEY.findall(raw)):
        # Either a text holds `":`, or a key stands twice: only the slow reader can tell.
        return _read_slowly(raw, max_depth, read, prefix_allowed)
    return document


def _measured(document: Any) -> tuple[int, int, bool]:
    """The number of keys, the depth, and whether a float may be a whole number that 64 bits do not hold."""
    keys, depth, rounded = 0, 0, _beyond_64_bits(document)
    level = [document]
    while level:
        deeper: list[Any] = []
        for node in level:
            if type(node) is dict:
                keys += len(node)
                inner: Any = node.values()
            elif type(node) is list:
                inner = node
            else:
                continue
            deeper.extend([v for v in inner if type(v) is dict or type(v) is list])
            floats = [v for v in inner if type(v) is float]
            rounded = rounded or (bool(floats) and (_beyond_64_bits(max(floats)) or _beyond_64_bits(min(floats))))
        level = deeper
        depth += 1
    return keys, depth, rounded


def _beyond_64_bits(value: Any) -> bool:
    return type(value) is float and not -(2.0**63) < value < 2.0**63


def _read_slowly(raw: bytes, max_depth: int, read: Read, prefix_allowed: bool) -> Any:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _bad_encoding(raw, error) from None

    def number(literal: str) -> float | None:
        value = float(literal)
        if math.isinf(value):
            read.repairs.append(Repair.NON_FINITE_NUMBER)
            return None
        return value

    def integer(literal: str) -> int | float | None:
        # An id keeps all its digits; what no float can hold is no number to anybody.
        return int(literal) if len(literal) < MAX_DIGITS else number(literal)

    def constant(_: str) -> None:
        read.repairs.append(Repair.NON_FINITE_NUMBER)

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in items:
            if key in found:
                read.repairs.append(Repair.DUPLICATE_KEY)
                if found[key] != value:
                    read.conflicts.add(key)
            found[key] = value
        return found

    decoder = json.JSONDecoder(parse_float=number, parse_int=integer, parse_constant=constant, object_pairs_hook=pairs)
    try:
        document = decoder.decode(text)
    except RecursionError:
        raise _too_deep(HARD_DEPTH, max_depth) from None
    except ValueError as error:
        printed = _printed(text)
        if printed is not None:
            read.repairs.append(Repair.PYTHON_REPR)
            return sanitised(printed, read.repairs)
        start = text.find("{")
        if not prefix_allowed or not 0 < start <= MAX_PREFIX or "\x00" in text[:start]:
            raise _not_text(raw) or DecodeError(
                Refusal.NOT_JSON, f"{_position(error)}; one JSON object is expected"
            ) from None
        document = read_json(text[start:].encode(), max_depth, read)
        read.repairs.append(Repair.TEXT_BEFORE_JSON)
        return document
    depth = _measured(document)[1]
    if depth > min(max_depth, HARD_DEPTH):
        raise _too_deep(depth, max_depth)
    if _SURROGATE_ESCAPE.search(raw):
        document = sanitised(document, read.repairs)
    return document


def _printed(text: str) -> dict[str, Any] | None:
    """The dict of a record that was logged with `str()`; its depth is capped by the reader of printed texts."""
    if not text.lstrip().startswith("{'") or len(text) > MAX_PRINTED:
        return None
    try:
        printed = read_repr(text)
    except NotARepr:
        return None
    return printed if isinstance(printed, dict) else None


def _position(error: ValueError) -> str:
    return str(error) if isinstance(error, json.JSONDecodeError) else "not JSON"


def _too_deep(depth: int, max_depth: int) -> DecodeError:
    return DecodeError(
        Refusal.TOO_DEEP, f"nested {depth} levels or more; at most {min(max_depth, HARD_DEPTH)} (decode.max_depth)"
    )


def sanitised(node: Any, repairs: list[str]) -> Any:
    """`node` with surrogate pairs joined and lone surrogates replaced by U+FFFD, in texts and in keys."""
    if isinstance(node, str):
        try:
            node.encode("utf-8")
        except UnicodeEncodeError:
            repairs.append(Repair.SURROGATE)
            return node.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return node
    if isinstance(node, list):
        return [sanitised(item, repairs) for item in node]
    if isinstance(node, dict):
        return {sanitised(key, repairs): sanitised(value, repairs) for key, value in node.items()}
    return node


def _unframed(raw: bytes, read: Read, max_bytes: int, gzip_allowed: bool) -> bytes:
    """`raw` without a byte order mark, a schema-registry header or gzip; in the order in which producers add them."""
    if raw[:2] == b"\x1f\x8b":
        raw = _gunzip(raw, max_bytes, gzip_allowed)
        read.repairs.append(Repair.GZIP)
    if raw[:3] == b"\xef\xbb\xbf":
        read.repairs.append(Repair.BOM)
        raw = raw[3:]
    if raw[:1] in (b"\x00", b"\x03"):
        raw, read.schema_id = _after_registry_header(raw)
    for magic, name in _COMPRESSED.items():
        if raw.startswith(magic):
            raise DecodeError(Refusal.UNSUPPORTED_FORMAT, f"the value is {name}; JSON is read in this version")
    if not raw.strip(b" \t\r\n"):
        raise DecodeError(Refusal.EMPTY, "the value holds white space only")
    return raw


def _after_registry_header(raw: bytes) -> tuple[bytes, str]:
    """Confluent (0, four-byte id), Apicurio (0, eight-byte id) and AWS Glue (3, compression, sixteen-byte id)."""
    if raw[0] == 3:
        if raw[1:2] == b"\x00" and _starts_json(raw[18:]):
            return raw[18:], raw[2:18].hex()
    else:
        for width in (4, 8):
            body = raw[1 + width :]
            if _starts_json(body):
                return body, str(int.from_bytes(raw[1 : 1 + width]))
    wide = _wide_encoding(raw)
    if wide:
        raise DecodeError(Refusal.BAD_ENCODING, f"the value looks like {wide}; UTF-8 is expected")
    raise DecodeError(
        Refusal.UNSUPPORTED_FORMAT,
        "a schema-registry header without JSON behind it (Avro or Protobuf): let the producer use the JSON Schema "
        "serializer, or convert with Kafka Connect's JsonConverter",
    )


def _starts_json(body: bytes) -> bool:
    # The second byte settles it: a Protobuf or Avro body may well begin with 0x7B.
    head = body.lstrip(b" \t\r\n")[:2]
    return (head[:1] == b"{" and (len(head) == 1 or head[1:2] in b'" \t\r\n}')) or head[:2] in (b"[{", b'"{')


def _gunzip(raw: bytes, max_bytes: int, allowed: bool) -> bytes:
    if not allowed:
        raise DecodeError(Refusal.UNSUPPORTED_FORMAT, "the value is gzip; set decode.gzip = true to unpack it")
    stream = zlib.decompressobj(wbits=31)
    try:
        body = stream.decompress(raw, max_bytes + 1)
    except zlib.error as error:
        raise DecodeError(Refusal.CORRUPT_GZIP, str(error)) from None
    if len(body) > max_bytes:
        raise DecodeError(Refusal.TOO_LARGE, f"more than {max_bytes} bytes after gzip (decode.max_bytes)")
    if not stream.eof:
        raise DecodeError(Refusal.CORRUPT_GZIP, "the gzip stream ends early")
    return body


def _bad_encoding(raw: bytes, error: UnicodeDecodeError) -> DecodeError:
    return _not_text(raw) or DecodeError(
        Refusal.BAD_ENCODING,
        f"byte 0x{raw[error.start]:02x} at {error.start} is not UTF-8 ({_likely_encodings(raw)}?); "
        "let the producer write UTF-8",
    )


def _likely_encodings(raw: bytes) -> str:
    try:
        raw.decode("gb18030")  # GBK is a part of it
    except UnicodeDecodeError:
        return "Latin-1 or Windows-1252"
    return "GBK or GB18030, Latin-1 or Windows-1252"


def _not_text(raw: bytes) -> DecodeError | None:
    """The refusal of bytes that are a wider encoding or no text at all; None for what may be text."""
    wide = _wide_encoding(raw)
    if wide:
        return DecodeError(Refusal.BAD_ENCODING, f"the value looks like {wide}; UTF-8 is expected")
    head = raw[:200]
    if sum(byte < 9 or 13 < byte < 32 for byte in head) * 20 > len(head):
        return DecodeError(Refusal.UNSUPPORTED_FORMAT, "the value is binary (Avro, Protobuf, compressed?), not JSON")
    return None


def _wide_encoding(raw: bytes) -> str | None:
    if raw[:4] in (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff"):
        return "UTF-32"
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "UTF-16"
    # A JSON text begins with ASCII, so its first characters show where the zero bytes are.
    head = raw[:8]
    if len(head) < 8:
        return None
    if not any(head[1:4] + head[5:8]) or not any(head[0:3] + head[4:7]):
        return "UTF-32"
    return "UTF-16" if not any(head[1::2]) or not any(head[0::2]) else None
