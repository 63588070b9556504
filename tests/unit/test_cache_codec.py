"""Keys and values of the embedding cache, its memory, and the breaker: pure, no Redis."""

from __future__ import annotations

import pickle
import struct
import threading
import time
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.breaker import Breaker
from consumer.cache import CachedEmbedder, Memory
from consumer.vector_codec import cache_key, decode_vector, encode_vector
from metrics.metric import Text, Vector
from metrics.outcome import Reason, Unscored

KEY = b"groundwatch:v1:aa"
VECTOR = np.array([0.6, 0.8, 0.0], np.float32)
part = st.text(max_size=12) | st.sampled_from(["a", "a-b", "b", ":", "1:a", "query", "passage", "\u00e9", "e\u0301"])
identities = st.tuples(part, part, st.sampled_from(["query", "passage"]), part)


# Field case 44: distinct (model, precision, role, text) have distinct keys, whatever separators they hold.
@given(identities, identities)
def test_distinct_inputs_have_distinct_keys(a: tuple[str, str, str, str], b: tuple[str, str, str, str]) -> None:
    keys = [cache_key(i, p, Text(role, text)) for i, p, role, text in (a, b)]  # type: ignore[arg-type]
    assert (keys[0] == keys[1]) == (a == b)
    assert all(len(key.rpartition(b":")[2]) == 64 for key in keys)


def test_composed_and_decomposed_text_are_two_texts() -> None:
    composed, decomposed = "caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9")
    assert cache_key("m", "fp32", Text("query", composed)) != cache_key("m", "fp32", Text("query", decomposed))


def test_lone_surrogate_has_a_key() -> None:
    assert cache_key("m", "fp32", Text("query", "\ud800"))


def test_value_comes_back_exactly() -> None:
    found = decode_vector(KEY, encode_vector(KEY, VECTOR), 3)
    assert found is not None
    assert np.array_equal(found, VECTOR)
    assert not found.flags.writeable


# Field case 45: bytes of any other kind are a miss, and nothing is ever unpickled.
@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"0.6,0.8,0.0",
        b"[0.6, 0.8, 0.0]",
        VECTOR.tobytes(),
        VECTOR.astype(">f8").tobytes(),
        VECTOR.astype(np.float16).tobytes(),
        pickle.dumps(VECTOR),
        encode_vector(KEY, VECTOR)[:-1],
        encode_vector(KEY, VECTOR) + b"\0",
        encode_vector(KEY, np.array([0.6, 0.8], np.float32)),
        encode_vector(KEY, np.array([np.nan, 0.8, 0.0], np.float32)),
        encode_vector(KEY, np.zeros(3, np.float32)),
        encode_vector(b"groundwatch:v1:bb", VECTOR),
        b"GWv\x02" + encode_vector(KEY, VECTOR)[4:],
        struct.pack("<3sBII", b"GWv", 1, 3, 0) + VECTOR.tobytes(),
    ],
)
def test_any_other_value_is_not_believed(value: bytes) -> None:
    assert decode_vector(KEY, value, 3) is None


@given(st.binary(max_size=64))
def test_no_bytes_raise(value: bytes) -> None:
    assert decode_vector(KEY, value, 3) is None


@given(st.integers(0, 12 + 3 * 4 - 1), st.integers(1, 255))
def test_a_flipped_bit_is_seen(position: int, change: int) -> None:
    value = bytearray(encode_vector(KEY, VECTOR))
    value[position] ^= change
    assert decode_vector(KEY, bytes(value), 3) is None


def test_memory_is_bounded_in_entries_and_bytes_and_forgets_the_least_recent() -> None:
    memory = Memory(entries=2)
    for name in (b"a", b"b"):
        memory.put(name, VECTOR)
    assert memory.get(b"a") is not None
    memory.put(b"c", VECTOR)
    assert memory.get(b"b") is None
    assert memory.get(b"a") is not None
    small = Memory(entries=100, most_bytes=30)
    for i in range(10):
        small.put(bytes([i]), VECTOR)
    assert len(small) == 2
    none = Memory(entries=0)
    none.put(b"a", VECTOR)
    assert len(none) == 0


class Slow:
    """An embedder that counts what it is asked for, and takes a moment."""

    identity, dimension = "slow@1", 3

    def __init__(self, seconds: float = 0.0) -> None:
        self.asked: Counter[str] = Counter()
        self.seconds = seconds

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
        self.asked.update(text.content for text in texts)
        time.sleep(self.seconds)
        if any(text.content == "fail" for text in texts):
            raise OSError("gone")
        return [
            VECTOR.copy() if text.content.strip() and text.content != "nan" else Unscored(Reason.NON_FINITE)
            for text in texts
        ]


def cached(inner: Slow, counts: Counter[str] | None = None) -> CachedEmbedder:
    seen = counts if counts is not None else Counter[str]()
    return CachedEmbedder(
        inner, precision="fp32", memory=Memory(100), remote=None, count_memory=lambda kind, n: seen.update({kind: n})
    )


def test_known_texts_are_not_computed_again_and_order_is_kept() -> None:
    inner, counts = Slow(), Counter[str]()
    one = cached(inner, counts)
    texts = [Text("passage", c) for c in ("a", "b", "a")]
    assert len(one.embed(texts)) == 3
    one.embed(texts[:2])
    assert inner.asked == {"a": 1, "b": 1}
    assert counts == {"miss": 2, "hit": 2}


def test_unscored_is_never_kept() -> None:
    inner = Slow()
    one = cached(inner)
    for _ in range(2):
        assert one.embed([Text("passage", "nan"), Text("passage", " ")]) == [Unscored(Reason.NON_FINITE)] * 2
    assert inner.asked["nan"] == 2


def test_several_threads_asking_for_one_text_compute_it_once() -> None:
    inner = Slow(0.2)
    one = cached(inner)
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(one.embed([Text("passage", "same")])[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inner.asked["same"] == 1
    assert len(found) == 8
    assert all(np.array_equal(vector, VECTOR) for vector in found)


def test_failure_reaches_all_who_wait_and_is_forgotten() -> None:
    inner = Slow(0.2)
    one = cached(inner)
    errors: list[BaseException] = []

    def call() -> None:
        try:
            one.embed([Text("passage", "fail")])
        except OSError as error:
            errors.append(error)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(errors) == 3
    with pytest.raises(OSError, match="gone"):
        one.embed([Text("passage", "fail")])


def test_two_threads_with_crossed_texts_do_not_wait_for_each_other_for_ever() -> None:
    one = cached(Slow(0.05))
    done: list[int] = []

    def call(names: str) -> None:
        done.append(len(one.embed([Text("passage", name) for name in names])))

    threads = [threading.Thread(target=call, args=(names,), daemon=True) for names in ("ab", "ba", "bc", "ca")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert done == [2, 2, 2, 2]


def test_breaker_opens_tries_once_doubles_and_closes() -> None:
    clock = [0.0]
    breaker = Breaker(lambda: clock[0], first_seconds=1, longest_seconds=3)
    assert breaker.allows()
    breaker.failed()
    assert breaker.is_open
    assert not breaker.allows()
    clock[0] = 1.0
    assert breaker.allows()
    assert not breaker.allows(), "one trial at a time"
    breaker.failed()
    clock[0] = 2.9
    assert not breaker.allows()
    clock[0] = 3.0
    assert breaker.allows()
    breaker.failed()
    clock[0] = 5.9
    assert not breaker.allows()
    clock[0] = 6.0
    assert breaker.allows()
    breaker.succeeded()
    assert breaker.allows()
    assert not breaker.is_open
