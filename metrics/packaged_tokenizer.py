"""The tokeniser of the packaged model: its character map, and its Unigram pieces as a SentencePiece model.

SentencePiece itself cuts the text: the same ids as the tokenizers package gives, in a tenth of its time, and in 60 MB
where that takes 280 MB for a vocabulary of 250,000. A tokenizer.json is written beside it for transformers.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping

from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import Unigram
from tokenizers.processors import TemplateProcessing

from metrics.model_files import ModelError
from metrics.packaged_model import Pieces

MOST_EXCEPTIONS = 64
_PRIVATE = 0x10FE00
"""First of the private-use characters that carry an exception past NFKC."""
_NEVER = -1000.0
"""Log-probability of a piece that text is never cut into; real ones are above -25."""
_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3
_UNIGRAM = 1


def tokenizer_of(pieces: Pieces, exceptions: Mapping[str, str]) -> Tokenizer:
    """A tokenizers pipeline that gives the ids of the original model (XLM-R's SentencePiece, rule `nmt_nfkc`).

    `exceptions` as of `exceptions_of`.
    """
    special = _special(pieces)
    # Text is data: a "</s>" in an answer is four characters. At their score of 0 the special pieces would win.
    scored = [(text, _NEVER if i in special else score) for i, (text, score) in enumerate(pieces.scored)]
    tokenizer = Tokenizer(Unigram(scored, unk_id=pieces.unknown, byte_fallback=False))
    tokenizer.normalizer = normaliser(exceptions)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    )
    begin, end = pieces.scored[pieces.begin][0], pieces.scored[pieces.end][0]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{begin} $A {end}", special_tokens=[(begin, pieces.begin), (end, pieces.end)]
    )
    return tokenizer


def sentencepiece_of(pieces: Pieces) -> bytes:
    """A SentencePiece model file (ModelProto of sentencepiece_model.proto) without a normaliser of its own."""
    special = _special(pieces)
    out = bytearray()
    for i, (text, score) in enumerate(pieces.scored):
        kind = _UNKNOWN if i == pieces.unknown else _CONTROL if i in special else _NORMAL
        out += _block(1, _block(1, text.encode()) + b"\x15" + struct.pack("<f", score) + _number(3, kind))
    ids = ((40, pieces.unknown), (41, pieces.begin), (42, pieces.end), (43, pieces.pad))
    out += _block(2, _number(3, _UNIGRAM) + b"".join(_number(field, value) for field, value in ids))
    # Prepend a space, drop surplus spaces, write spaces as U+2581.
    out += _block(3, _block(1, b"identity") + _number(3, 1) + _number(4, 1) + _number(5, 1))
    return bytes(out)


def exceptions_of(character_map: Mapping[int, str]) -> dict[str, str]:
    """Where the map differs from NMT + NFKC; every character of Unicode is compared.

    Raises:
        ModelError: it differs so much that it is another rule.
    """
    standard = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    found = {
        chr(code): character_map.get(code, chr(code))
        for code in range(sys.maxunicode + 1)
        if not 0xD800 <= code < 0xE000
        and standard.normalize_str(chr(code)) != character_map.get(code, chr(code))
    }  # fmt: skip
    if len(found) > MOST_EXCEPTIONS:
        raise ModelError(f"the package's character map is not NMT + NFKC: {len(found)} characters differ")
    return found


def normaliser(exceptions: Mapping[str, str]) -> normalizers.Normalizer:
    """NMT + NFKC, with the exceptions carried past NFKC by private-use characters.

    The package's map has single characters only; NFKC also composes a sequence (e and U+0301 to é), as the original
    model's own table does.
    """
    steps: list[normalizers.Normalizer] = [normalizers.Nmt()]
    steps += [normalizers.Replace(source, chr(_PRIVATE + i)) for i, source in enumerate(exceptions)]
    steps.append(normalizers.NFKC())
    steps += [normalizers.Replace(chr(_PRIVATE + i), target) for i, target in enumerate(exceptions.values())]
    steps.append(normalizers.Replace(Regex(" {2,}"), " "))
    return normalizers.Sequence(steps)


def _special(pieces: Pieces) -> set[int]:
    masks = {i for i, (text, _) in enumerate(pieces.scored) if text == "<mask>"}
    return {pieces.begin, pieces.end, pieces.pad, pieces.unknown} | masks


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _block(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content
