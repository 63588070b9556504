"""Rows for the verifier: one premise and any number of statements in one sequence, each statement blind to the others.

A row is `<s> premise </s>` and then `</s> statement </s>` for every statement. Premise tokens see the premise, a
statement's tokens see the premise and their own statement, and every statement stands at the same positions. So one
pass over a premise serves all statements about it, and a statement is read as if it stood alone with the premise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from metrics.encoder import padded_rows

PREMISE_TOKENS = 280
"""Longest premise, without its two special tokens."""
STATEMENT_AT = PREMISE_TOKENS + 2
"""Position of a statement's first token, whatever the length of the premise."""
STATEMENT_TOKENS = 512 - STATEMENT_AT - 2
"""Longest statement, without its two special tokens."""

Ids = Sequence[int]


@dataclass(frozen=True, slots=True)
class Row:
    """Token ids without special tokens; what is longer than the limits is cut off."""

    premise: Ids
    statements: Sequence[Ids]

    @property
    def length(self) -> int:
        """Tokens of the packed row."""
        statements = sum(min(len(s), STATEMENT_TOKENS) + 2 for s in self.statements)
        return min(len(self.premise), PREMISE_TOKENS) + 2 + statements


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows laid end to end, `total` tokens and padding up to one of a few sizes.

    `cells[i]`: where token i lies in the (rows x longest) matrix that attention works on. `mask`: (rows, 1, longest,
    longest), true where a query may look. `statement_tokens`: places of all tokens of statements, `owner` the number of
    the statement of each, `first` where each statement begins among them.
    """

    ids: Tensor
    positions: Tensor
    cells: Tensor
    rows: int
    longest: int
    mask: Tensor
    statement_tokens: Tensor
    owner: Tensor
    first: Tensor
    total: int


def pack(rows: Sequence[Row], begin: int, end: int) -> Batch:
    """Rows as tensors; statements are numbered through all rows. `begin`, `end`: ids of the special tokens."""
    ids: list[int] = []
    positions: list[int] = []
    cells: list[int] = []
    statement_tokens: list[int] = []
    owner: list[int] = []
    first: list[int] = []
    longest = max(row.length for row in rows)
    segments = torch.full((len(rows), longest), -1, dtype=torch.int16)
    for r, row in enumerate(rows):
        at = len(ids)
        premise = [begin, *row.premise[:PREMISE_TOKENS], end]
        ids += premise
        positions += range(len(premise))
        column = len(premise)
        segments[r, :column] = 0
        for k, statement in enumerate(row.statements, start=1):
            own = [end, *statement[:STATEMENT_TOKENS], end]
            first.append(len(statement_tokens))
            statement_tokens += range(len(ids), len(ids) + len(own))
            owner += [len(first) - 1] * len(own)
            ids += own
            positions += range(STATEMENT_AT, STATEMENT_AT + len(own))
            segments[r, column : column + len(own)] = k
            column += len(own)
        cells += range(r * longest, r * longest + len(ids) - at)
    query, key = segments[:, :, None], segments[:, None, :]
    # What is padding looks at premise and padding, so that no row of the mask is empty: a softmax over nothing is NaN.
    mask = ((key == 0) | (key == query))[:, None]
    size = padded_rows(len(ids))
    return Batch(
        ids=torch.tensor(ids + [end] * (size - len(ids))),
        positions=torch.tensor(positions + [0] * (size - len(ids))),
        cells=torch.tensor(cells),
        rows=len(rows),
        longest=longest,
        mask=mask,
        statement_tokens=torch.tensor(statement_tokens),
        owner=torch.tensor(owner),
        first=torch.tensor(first),
        total=len(ids),
    )
