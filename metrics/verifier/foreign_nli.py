"""Any NLI cross-encoder that transformers reads as a sequence classifier, in place of the verifier's own network.

No hub is asked and no code of a model is run: the model must lie in a folder, its classes must be named in its
configuration (`label_order`), and known pairs must come out right, or it is refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from metrics.embedding import batches
from metrics.judge import Label
from metrics.model_files import ModelError
from metrics.verifier.joined import Joined
from metrics.verifier.label_order import faults, label_order
from metrics.verifier.reader import Asked, Opinion

BUDGET = 4096
"""Tokens of one pass, padding included."""
PLAIN = Joined({"network": 1.0}, 0.0, {"versus": 1.0}, 0.0, None, None, 0.5, "plain")
"""What joins a foreign network with words: nothing is fitted for it, so its own probabilities decide."""


class ForeignNli:
    """Fulfils `metrics.verifier.reader.Opinions`. Not safe for several threads at once."""

    def __init__(self, model: Any, tokenizer: Any, order: tuple[Label, ...], limit: int) -> None:
        """`order`: what each output means; `limit`: most tokens of a pair."""
        self.order, self.limit = order, limit
        self._model, self._tokenizer = model, tokenizer

    def lengths(self, texts: Sequence[str]) -> list[int]:
        return (
            [len(ids) for ids in self._tokenizer(list(texts), add_special_tokens=False)["input_ids"]] if texts else []
        )

    def opinions(self, asked: Sequence[Asked]) -> list[list[Opinion]]:
        pairs = [(premise, statement) for premise, own in asked for statement in own]
        scores = iter(self.scores(pairs))
        nothing = np.empty(0, np.float32)
        return [[Opinion(_classes(next(scores)), nothing) for _ in own] for _, own in asked]

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[Mapping[Label, float]]:
        """Probabilities by label, in order; what is too long loses the end of its premise, never of its statement."""
        if not pairs:
            return []
        encoded = self._tokenizer([p for p, _ in pairs], [s for _, s in pairs], truncation="only_first",
                                  max_length=self.limit)  # fmt: skip
        found: list[Mapping[Label, float]] = [{}] * len(pairs)
        for batch in batches([len(ids) for ids in encoded["input_ids"]], BUDGET):
            padded = self._tokenizer.pad(
                {key: [values[i] for i in batch] for key, values in encoded.items()}, return_tensors="pt"
            )
            with torch.inference_mode():
                logits = self._model(**padded).logits.float()
            for i, row in zip(batch, torch.softmax(logits, 1).tolist(), strict=True):
                found[i] = dict(zip(self.order, row, strict=True))
        return found


def _classes(scores: Mapping[Label, float]) -> tuple[float, float, float]:
    """A model of two classes knows only that something is not supported."""
    return scores[Label.SUPPORTED], scores.get(Label.NOT_FOUND, 0.0), scores.get(Label.CONTRADICTED, 0.0)


def load_nli(folder: Path, name: str, languages: Sequence[str] = ("en",)) -> ForeignNli:
    """The model in `folder`, proved by known pairs in `languages`.

    Raises:
        ModelError: no sequence classifier that transformers reads without code of its own, classes without a known
            name, or known pairs that come out wrong.
    """
    # Before the import: the libraries read these once.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    try:
        model = AutoModelForSequenceClassification.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # the library raises what it likes
        raise ModelError(f"{folder} is no NLI model that transformers reads: {error}") from None
    named = {int(index): str(label) for index, label in model.config.id2label.items()}
    order = label_order(named, name)
    limits = [n for n in (getattr(model.config, "max_position_embeddings", 0), tokenizer.model_max_length)
              if n and 0 < n < 1_000_000]  # fmt: skip
    network = ForeignNli(model.eval().float(), tokenizer, order, min([512, *limits]))
    wrong = faults(network.scores, languages)
    if wrong:
        raise ModelError(f"{name} does not judge known pairs as everybody would, so it is not used: {'; '.join(wrong)}")
    return network
