"""The embedder's rules, over a small hand-written network: blanks, order, prefixes, half precision, forks."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.blank import is_blank
from metrics.embedding import LocalEmbedder
from metrics.metric import Text
from metrics.outcome import Reason, Unscored
from metrics.tokens import Tokens
from metrics.windows_of_tokens import MOST_WINDOWS

BLANKS = ("", "   ", "\u200b", "\u0000", "\n\t\u3000", "\ufeff\u200d \u00ad")


class ByteNetwork:
    """Unit vectors that depend on every token of a text and on its order; `bad` token ids give what is not finite."""

    def __init__(self, bad: set[int] | None = None) -> None:
        self.calls: list[list[list[int]]] = []
        self.bad = bad or set()

    def encode(self, texts: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]:
        self.calls.append([list(text) for text in texts])
        rows = []
        for text in texts:
            raw = np.array([sum(text), sum(i * t for i, t in enumerate(text)), len(text), 1.0])
            rows.append(np.full(4, np.nan) if self.bad & set(text) else raw / np.linalg.norm(raw))
        return np.asarray(rows, np.float32).reshape(len(rows), 4)


def embedder(network: ByteNetwork, exact: ByteNetwork | None = None, limit: int = 16, **more: object) -> LocalEmbedder:
    tokens = Tokens(
        cut=lambda texts: [[b + 10 for b in text.encode("utf-8", "replace")] for text in texts],
        limit=limit, prefixes={"query": "q:", "passage": ""}, before=(1,), after=(2,),
    )  # fmt: skip
    return LocalEmbedder("bytes", "r1", 4, tokens, network, lambda: exact or network, 2, **more)  # type: ignore[arg-type]


def test_a_long_text_shows_after_every_batch_that_something_moves() -> None:
    network = ByteNetwork()
    heard: list[int] = []
    one = embedder(network, batch_tokens=32, turned=lambda: heard.append(len(network.calls)))
    one.embed([Text("passage", "x" * 400)])
    assert heard == list(range(1, len(network.calls) + 1))
    assert len(heard) > 10


def test_a_text_of_200_000_characters_costs_no_more_than_one_of_32_windows() -> None:
    network = ByteNetwork()
    counts: Counter[str] = Counter()
    one = embedder(network, count=lambda kind, n: counts.update({kind: n}))
    content = "ab" * 100_000
    one.embed([Text("passage", content + "end"), Text("passage", "short")])
    pieces = [text for call in network.calls for text in call]
    assert len(pieces) == MOST_WINDOWS + 1
    assert [ord("d") + 10, 2] in [piece[-2:] for piece in pieces], "the end counts"
    assert (counts["split"], counts["spread"], counts["whole"]) == (1, 1, 1)


# Field case 39: blank text is unscored, never embedded, never a zero vector.
@pytest.mark.parametrize("blank", BLANKS)
def test_blank_text_is_unscored_without_a_model_call(blank: str) -> None:
    network = ByteNetwork()
    assert is_blank(blank)
    assert embedder(network).embed([Text("passage", blank)]) == [Unscored(Reason.EMPTY_TEXT)]
    assert sum(len(call) for call in network.calls) == 0


def test_blank_text_in_a_batch_leaves_its_neighbours_alone() -> None:
    counts: Counter[str] = Counter()
    one = embedder(ByteNetwork(), count=lambda kind, n: counts.update({kind: n}))
    alone = one.embed([Text("passage", "five")])[0]
    found = one.embed([Text("passage", "\u200b"), Text("passage", "five"), Text("passage", "")])
    assert found[0] == found[2] == Unscored(Reason.EMPTY_TEXT)
    assert np.array_equal(found[1], alone)
    assert counts["blank"] == 2
    assert counts["whole"] == 2


@given(st.lists(st.text(min_size=0, max_size=60), max_size=12))
def test_order_is_kept_and_nothing_depends_on_the_neighbours(contents: list[str]) -> None:
    one = embedder(ByteNetwork())
    together = one.embed([Text("passage", content) for content in contents])
    for content, vector in zip(contents, together, strict=True):
        (alone,) = one.embed([Text("passage", content)])
        if isinstance(vector, Unscored):
            assert alone == vector
        else:
            assert np.array_equal(alone, vector)
            assert np.isfinite(vector).all()


def test_prefix_belongs_to_the_role() -> None:
    one = embedder(ByteNetwork())
    query, passage = one.embed([Text("query", "same"), Text("passage", "same")])
    assert not np.array_equal(query, passage)


# Field case 33: what lies past the window is read, in windows, and counted.
def test_long_text_is_split_and_its_end_counts() -> None:
    counts: Counter[str] = Counter()
    network = ByteNetwork()
    one = embedder(network, count=lambda kind, n: counts.update({kind: n}))
    first, second = one.embed([Text("passage", "a" * 40 + "x"), Text("passage", "a" * 40 + "z")])
    assert not np.array_equal(first, second)
    assert counts["split"] == 2
    assert max(len(ids) for call in network.calls for ids in call) == 16
    assert all(ids[0] == 1 and ids[-1] == 2 for call in network.calls for ids in call)


# Field case 38: what is not finite at a low precision is computed alone in float32, else unscored.
def test_not_finite_vector_is_recomputed_alone_in_float32() -> None:
    exact, counts = ByteNetwork(), Counter[str]()
    one = embedder(ByteNetwork(bad={ord("x") + 10}), exact, count=lambda kind, n: counts.update({kind: n}))
    good, mended = one.embed([Text("passage", "fine"), Text("passage", "xx")])
    assert not isinstance(good, Unscored)
    assert not isinstance(mended, Unscored)
    assert np.isfinite(mended).all()
    assert [len(call) for call in exact.calls] == [1]
    assert counts["recomputed"] == 1


def test_vector_that_stays_not_finite_is_unscored() -> None:
    broken = ByteNetwork(bad={ord("x") + 10})
    assert embedder(broken, broken).embed([Text("passage", "xx")]) == [Unscored(Reason.NON_FINITE)]


def test_norm_of_large_half_precision_values_does_not_overflow() -> None:
    from metrics.windows_of_tokens import pooled

    large = np.full((2, 384), 300.0, np.float16)
    found = pooled(large.astype(np.float32), [1, 1])
    assert np.isfinite(found).all()
    assert abs(float(found @ found) - 1) < 1e-5


# Field case 36: a model that was loaded before a fork says so instead of hanging.
def test_use_after_fork_is_refused() -> None:
    one = embedder(ByteNetwork())
    child = os.fork()
    if child == 0:
        try:
            one.embed([Text("passage", "hello")])
        except RuntimeError as error:
            os._exit(7 if "fork" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


# Field case 35: one inference at a time, whoever calls.
def test_threads_wait_for_one_another() -> None:
    inside, most = [0], [0]

    class Watched(ByteNetwork):
        def encode(self, texts: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            found = super().encode(texts)
            inside[0] -= 1
            return found

    one = embedder(Watched())
    expected = {n: one.embed([Text("passage", "t" * n)])[0] for n in range(1, 41)}
    errors: list[object] = []

    def call(seed: int) -> None:
        for i in range(250):
            n = (seed * 31 + i) % 40 + 1
            try:
                (found,) = one.embed([Text("passage", "t" * n)])
                if not np.array_equal(found, expected[n]):
                    errors.append(n)
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert most == [1]


def test_identity_names_what_a_vector_depends_on() -> None:
    base = embedder(ByteNetwork()).identity
    assert embedder(ByteNetwork(), limit=32).identity != base
    for part in ("bytes", "r1", "dim=4", "window=16-2", "query='q:'"):
        assert part in base
