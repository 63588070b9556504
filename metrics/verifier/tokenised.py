"""Passages with claims as token ids and token labels, and the steps of a stage."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from metrics.tokens import Tokens
from metrics.verifier.packing import PREMISE_TOKENS, STATEMENT_TOKENS, Batch, Row, pack
from metrics.verifier.sources import Claim, Passage, Span

UNKNOWN = -1
"""Label of a token of which nothing is known; those of others are 0 and 1 (unsupported)."""
POOL = 512
"""Rows that are sorted by length before they are cut into steps, so that rows of a step are about equally long."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A row to learn from; `tokens[k]` has one label for each token of statement k, without the special ones."""

    row: Row
    labels: tuple[int, ...]
    tokens: tuple[tuple[int, ...], ...]
    source: str


@dataclass(frozen=True, slots=True)
class Lesson:
    """A batch with its labels: one a statement, and one for each entry of `batch.statement_tokens`."""

    batch: Batch
    labels: Tensor
    tokens: Tensor
    sources: tuple[str, ...]


def tokenised(passages: Sequence[Passage], tokens: Tokens) -> list[Labelled]:
    """All passages as rows, in order."""
    claims = [claim for passage in passages for claim in passage.claims]
    premises = tokens.cut([passage.text for passage in passages])
    ids = tokens.cut([claim.text for claim in claims])
    marked = iter(_token_labels(claims, [len(i) for i in ids], tokens))
    each = iter(ids)
    found = []
    for passage, premise in zip(passages, premises, strict=True):
        statements = tuple(tuple(next(each)[:STATEMENT_TOKENS]) for _ in passage.claims)
        labels = tuple(next(marked)[:STATEMENT_TOKENS] for _ in passage.claims)
        row = Row(tuple(premise[:PREMISE_TOKENS]), statements)
        found.append(Labelled(row, tuple(c.label for c in passage.claims), labels, passage.source))
    return found


def _token_labels(claims: Sequence[Claim], lengths: Sequence[int], tokens: Tokens) -> list[tuple[int, ...]]:
    """0 and 1 by the claims' spans. Which tokens a span covers is told by how many the text before it is cut into."""
    before: list[str] = []
    for claim in claims:
        for start, end in claim.spans or ():
            before += [claim.text[:start], claim.text[:end]]
    counts = iter([len(ids) for ids in tokens.cut(before)])
    found = []
    for claim, length in zip(claims, lengths, strict=True):
        spans: list[Span] = [(next(counts), next(counts)) for _ in claim.spans or ()]
        labels = [UNKNOWN if claim.spans is None else 0] * length
        for low, high in spans:
            for at in range(max(0, min(low, length - 1)), min(max(high, low + 1), length)):
                labels[at] = 1
        found.append(tuple(labels))
    return found


def steps(rows: Sequence[Labelled], budget: int, seed: int) -> list[list[int]]:
    """Indices of the rows of every step: at most `budget` tokens each (a longer row goes alone), order by the seed."""
    rng = random.Random(f"{seed} steps")
    order = list(range(len(rows)))
    rng.shuffle(order)
    found: list[list[int]] = []
    for at in range(0, len(order), POOL):
        cut = list(_cut(sorted(order[at : at + POOL], key=lambda i: rows[i].row.length), rows, budget))
        rng.shuffle(cut)
        found += cut
    return found


def _cut(order: Sequence[int], rows: Sequence[Labelled], budget: int) -> Iterator[list[int]]:
    step: list[int] = []
    used = 0
    for i in order:
        if step and used + rows[i].row.length > budget:
            yield step
            step, used = [], 0
        step.append(i)
        used += rows[i].row.length
    if step:
        yield step


def lesson(rows: Sequence[Labelled], tokens: Tokens) -> Lesson:
    """Rows packed, with the labels of their statements and tokens."""
    batch = pack([r.row for r in rows], tokens.before[0], tokens.after[-1])
    marks = [m for r in rows for own in r.tokens for m in (UNKNOWN, *own, UNKNOWN)]
    labels = [label for r in rows for label in r.labels]
    named = tuple(r.source for r in rows for _ in r.labels)
    return Lesson(batch, torch.tensor(labels), torch.tensor(marks), named)
