"""How texts become token ids for one model: its tokeniser, its window, its prefixes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from metrics.model_files import EXCEPTIONS, SENTENCEPIECE, ModelError, read_json

Cut = Callable[[Sequence[str]], list[list[int]]]
"""Texts to token ids, without prefix and special tokens."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """`limit`: most tokens in one window, special tokens included, read from the model. `prefixes`: what goes in front
    of the texts of a role ("" = nothing). `before`, `after`: the special tokens around a text."""

    cut: Cut
    limit: int
    prefixes: Mapping[str, str]
    before: tuple[int, ...]
    after: tuple[int, ...]


def read_tokens(folder: Path) -> Tokens:
    """Tokeniser, window and prefixes of a prepared model folder.

    Raises:
        ModelError: a file is missing or damaged.
    """
    pipeline = folder / "config_sentence_transformers.json"
    prompts = (read_json(pipeline).get("prompts") or {}) if pipeline.is_file() else {}
    longest = read_json(folder / "sentence_bert_config.json")["max_seq_length"]
    limit = min(int(longest), int(read_json(folder / "config.json")["max_position_embeddings"]))
    prefixes = {role: prompts.get(role) or "" for role in ("query", "passage")}
    try:
        if (folder / SENTENCEPIECE).is_file():
            return _sentencepiece(folder, limit, prefixes)
        return huggingface_tokens(Tokenizer.from_file(str(folder / "tokenizer.json")), limit, prefixes)
    except ModelError:
        raise
    except Exception as error:  # both libraries raise what they like
        raise ModelError(
            f"the tokeniser in {folder} cannot be read ({error}); run: groundwatch models verify"
        ) from None


def huggingface_tokens(tokenizer: Tokenizer, limit: int, prefixes: Mapping[str, str]) -> Tokens:
    """`Tokens` over the tokenizers package. The tokeniser is made this object's own: nobody else may use it."""
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # Text is data: "[SEP]" inside an answer is five characters, not the end of it.
    tokenizer.encode_special_tokens = True

    def cut(texts: Sequence[str]) -> list[list[int]]:
        return [found.ids for found in tokenizer.encode_batch([readable(t) for t in texts], add_special_tokens=False)]

    bare, framed = tokenizer.encode("a", add_special_tokens=False).ids, tokenizer.encode("a").ids
    at = next((i for i in range(len(framed)) if framed[i : i + len(bare)] == bare), None)
    if at is None or not bare:
        raise ModelError("the tokeniser does not put its special tokens around the text")
    return Tokens(cut, limit, prefixes, tuple(framed[:at]), tuple(framed[at + len(bare) :]))


def _sentencepiece(folder: Path, limit: int, prefixes: Mapping[str, str]) -> Tokens:
    from sentencepiece import SentencePieceProcessor

    from metrics.packaged_tokenizer import normaliser

    processor = SentencePieceProcessor(model_file=str(folder / SENTENCEPIECE))
    normalise = normaliser(read_json(folder / EXCEPTIONS)).normalize_str

    def cut(texts: Sequence[str]) -> list[list[int]]:
        found: list[list[int]] = processor.encode([normalise(readable(t)) for t in texts], num_threads=1)
        return found

    return Tokens(cut, limit, prefixes, (processor.bos_id(),), (processor.eos_id(),))


def readable(text: str) -> str:
    """The text with lone surrogates, which cannot be encoded, replaced by "?"."""
    return text.encode("utf-8", "replace").decode()
