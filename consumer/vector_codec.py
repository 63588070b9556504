"""Cached vectors as bytes: what identifies one, and a value that is checked before it is believed."""

from __future__ import annotations

import hashlib
import struct
import zlib

import numpy as np

from metrics.metric import Text, Vector

SCHEMA = 1
"""Version of key and value together: raised when either changes, so that old entries are simply not found."""
MAGIC = b"GWv"
_HEADER = struct.Struct("<3sBII")
"""Magic, schema, dimension, CRC-32 of key and numbers."""


def cache_key(identity: str, precision: str, text: Text) -> bytes:
    """`groundwatch:v1:` and 64 hex digits: SHA-256 over all that the vector depends on, each part length-prefixed.

    `identity` is the embedder's (model, revision, dimension, window, prefixes, rule). Texts are told apart by their
    bytes: two Unicode spellings of one word are two texts.
    """
    digest = hashlib.sha256()
    for part in (str(SCHEMA), identity, precision, text.role, text.content):
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(raw) + raw)
    return b"groundwatch:v%d:%s" % (SCHEMA, digest.hexdigest().encode())


def encode_vector(key: bytes, vector: Vector) -> bytes:
    """A 12-byte header and the numbers as little-endian float32."""
    numbers = np.ascontiguousarray(vector, "<f4").tobytes()
    return _HEADER.pack(MAGIC, SCHEMA, len(vector), zlib.crc32(numbers, zlib.crc32(key))) + numbers


def decode_vector(key: bytes, value: bytes, dimension: int) -> Vector | None:
    """The vector stored under `key`; None for anything else.

    Anything else: other bytes, another version or dimension, cut short, damaged, stored under another key (a reply that
    belongs to another request), or not a finite unit vector.
    """
    if len(value) != _HEADER.size + 4 * dimension:
        return None
    magic, schema, length, checksum = _HEADER.unpack_from(value)
    numbers = value[_HEADER.size :]
    if (magic, schema, length) != (MAGIC, SCHEMA, dimension) or checksum != zlib.crc32(numbers, zlib.crc32(key)):
        return None
    vector = np.frombuffer(numbers, "<f4").astype(np.float32)
    # NaN fails this comparison too.
    if not abs(float(vector @ vector) - 1.0) < 1e-3:
        return None
    vector.setflags(write=False)
    return vector
