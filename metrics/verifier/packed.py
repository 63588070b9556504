"""The verifier's own network, asked by texts: tokenised, packed, in batches of equal length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import torch

from metrics.embedding import batches
from metrics.tokens import Tokens
from metrics.verifier.network import Verifier, read
from metrics.verifier.packing import PREMISE_TOKENS, STATEMENT_TOKENS, Row, pack
from metrics.verifier.reader import Asked, Opinion

BUDGET = 2048
"""Tokens of one pass: what lies between two layers stays in the processor's cache (4,096 take a tenth longer)."""
STATEMENTS = 12
"""Statements of one row: more only make its attention larger."""
PREMISES_KEPT = 4096


class PackedNetwork:
    """Fulfils `metrics.verifier.reader.Opinions`. Not safe for several threads at once."""

    def __init__(self, verifier: Verifier, tokens: Tokens) -> None:
        self.verifier, self.tokens = verifier, tokens
        self._premise: Callable[[str], tuple[int, ...]] = lru_cache(maxsize=PREMISES_KEPT)(self._cut)

    def lengths(self, texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in self.tokens.cut(texts)] if texts else []

    def opinions(self, asked: Sequence[Asked]) -> list[list[Opinion]]:
        statements = iter(self.tokens.cut([s for _, own in asked for s in own]) if asked else [])
        rows: list[Row] = []
        found: list[list[Opinion]] = [[] for _ in asked]
        places: list[int] = []
        for k, (premise, own) in enumerate(asked):
            ids = [tuple(next(statements)[:STATEMENT_TOKENS]) for _ in own]
            for at in range(0, len(ids), STATEMENTS):
                rows.append(Row(self._premise(premise), ids[at : at + STATEMENTS]))
                places.append(k)
        of_row: dict[int, list[Opinion]] = {}
        for batch in batches([row.length for row in rows], BUDGET):
            of_row |= zip(batch, self._run([rows[i] for i in batch]), strict=True)
        for r, k in enumerate(places):
            found[k] += of_row[r]
        return found

    def _cut(self, premise: str) -> tuple[int, ...]:
        return tuple(self.tokens.cut([premise])[0][:PREMISE_TOKENS])

    def _run(self, rows: Sequence[Row]) -> list[list[Opinion]]:
        batch = pack(rows, self.tokens.before[0], self.tokens.after[-1])
        with torch.inference_mode():
            reading = read(self.verifier, batch)
            classes = torch.softmax(reading.classes.float(), 1).tolist()
            marks = torch.sigmoid(reading.tokens.float()).numpy().astype(np.float32)
        found = []
        number = at = 0
        for row in rows:
            own = []
            for statement in row.statements:
                length = min(len(statement), STATEMENT_TOKENS) + 2
                supported, not_found, contradicted = classes[number]
                own.append(Opinion((supported, not_found, contradicted), marks[at + 1 : at + length - 1]))
                number, at = number + 1, at + length
            found.append(own)
        return found
