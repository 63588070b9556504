"""The tokeniser of the packaged model as a tokenizers pipeline: character map, words, Unigram pieces."""

from __future__ import annotations

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


def tokenizer_of(pieces: Pieces) -> Tokenizer:
    """A tokenizers pipeline that gives the ids of the original model (XLM-R's SentencePiece, rule `nmt_nfkc`).

    Raises:
        ModelError: the character map is not that rule.
    """
    tokenizer = Tokenizer(Unigram(pieces.scored, unk_id=pieces.unknown, byte_fallback=False))
    tokenizer.normalizer = normaliser_of(pieces.character_map)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    )
    names = [text for text, _ in pieces.scored]
    begin, end = names[pieces.begin], names[pieces.end]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{begin} $A {end}", special_tokens=[(begin, pieces.begin), (end, pieces.end)]
    )
    return tokenizer


def normaliser_of(character_map: Mapping[int, str]) -> normalizers.Normalizer:
    """The character map as NMT + NFKC, with what differs carried past NFKC by private-use characters.

    The map itself has single characters only; NFKC also composes what a sequence stands for (e and U+0301 to é), as the
    original model's own table does. Every character of Unicode is checked against the map.
    """
    standard = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    exceptions = [
        (chr(code), character_map.get(code, chr(code)))
        for code in range(sys.maxunicode + 1)
        if not 0xD800 <= code < 0xE000 and standard.normalize_str(chr(code)) != character_map.get(code, chr(code))
    ]
    if len(exceptions) > MOST_EXCEPTIONS:
        raise ModelError(f"the package's character map is not NMT + NFKC: {len(exceptions)} characters differ")
    steps: list[normalizers.Normalizer] = [normalizers.Nmt()]
    steps += [normalizers.Replace(source, chr(_PRIVATE + i)) for i, (source, _) in enumerate(exceptions)]
    steps.append(normalizers.NFKC())
    steps += [normalizers.Replace(chr(_PRIVATE + i), target) for i, (_, target) in enumerate(exceptions)]
    steps.append(normalizers.Replace(Regex(" {2,}"), " "))
    return normalizers.Sequence(steps)
