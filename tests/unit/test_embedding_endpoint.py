"""The embeddings endpoint against a real HTTP server: order, retries, budget, refusals, changed models."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from metrics.endpoint import EndpointEmbedder, RetryBudget, connect
from metrics.metric import Text
from metrics.model_files import ModelError
from metrics.outcome import Reason, Unscored
from metrics.windows_of_tokens import MOST_WINDOWS


class Server:
    """Answers with vectors that depend on the text. `script` is worked off first: a status to answer with instead."""

    def __init__(self) -> None:
        self.script: list[int] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.dimension = 4
        self.delay = 0.0
        self.refuse = ""
        self.value: float | None = None
        self.body: bytes | None = None


@pytest.fixture
def server() -> Iterator[tuple[Server, str]]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            state.requests.append(asked)
            state.headers.append(dict(self.headers))
            time.sleep(state.delay)
            status = state.script.pop(0) if state.script else 200
            if state.refuse and any(state.refuse in text for text in asked["input"]):
                status = 400
            rows = [
                {
                    "index": i,
                    "embedding": [state.value if state.value is not None else len(text), text.count("a"), 1, 2],
                }
                for i, text in enumerate(asked["input"])
            ]
            for row in rows:
                row["embedding"] = (row["embedding"] * 8)[: state.dimension]  # type: ignore[operator,index]
            body = state.body or json.dumps({"data": rows[::-1]}).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return None

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield state, f"http://127.0.0.1:{http.server_port}/v1"
    http.shutdown()


def passages(*contents: str) -> list[Text]:
    return [Text("passage", content) for content in contents]


def connected(address: str, **more: Any) -> EndpointEmbedder:
    return connect(address, "some-model", "secret", **({"timeout_seconds": 5.0, "window_characters": 100} | more))


def test_vectors_are_unit_length_in_order_and_unprefixed(server: tuple[Server, str]) -> None:
    state, address = server
    one = connected(address, batch_size=2)
    found = one.embed([Text("query", "aaa"), Text("passage", "bb"), Text("passage", "a")])
    assert one.dimension == 4
    for text, vector in zip(("aaa", "bb", "a"), found, strict=True):
        assert not isinstance(vector, Unscored)
        raw = np.array([len(text), text.count("a"), 1, 2])
        assert np.allclose(vector, raw / np.linalg.norm(raw), atol=1e-6)
    assert [request["input"] for request in state.requests[1:]] == [["aaa", "bb"], ["a"]]
    assert state.headers[0]["Authorization"] == "Bearer secret"


def test_blank_text_is_never_sent(server: tuple[Server, str]) -> None:
    state, address = server
    one = connected(address)
    assert one.embed(passages("", "\u200b")) == [Unscored(Reason.EMPTY_TEXT)] * 2
    assert len(state.requests) == 1


def test_busy_server_is_asked_again(server: tuple[Server, str]) -> None:
    state, address = server
    one = connected(address)
    state.script = [503, 429]
    assert not isinstance(one.embed(passages("a"))[0], Unscored)
    assert len(state.requests) == 4


def test_failing_server_costs_the_score_not_the_worker(server: tuple[Server, str]) -> None:
    state, address = server
    one = connected(address)
    state.script = [500] * 10
    assert one.embed(passages("a", "b")) == [Unscored(Reason.EMBEDDER_ERROR)] * 2
    assert len(state.requests) == 4, "three attempts, then no more"


def test_slow_server_is_given_up_at_the_deadline(server: tuple[Server, str]) -> None:
    state, address = server
    one = connected(address, timeout_seconds=0.5)
    state.delay = 3.0
    started = time.monotonic()
    assert one.embed(passages("a")) == [Unscored(Reason.EMBEDDER_ERROR)]
    assert time.monotonic() - started < 2.5


def test_refused_text_costs_only_its_own_score(server: tuple[Server, str]) -> None:
    state, address = server
    one = connected(address)
    state.refuse = "poison"
    found = one.embed(passages("a", "b", "poison", "d", "e"))
    assert [isinstance(vector, Unscored) for vector in found] == [False, False, True, False, False]


def test_long_text_goes_in_windows(server: tuple[Server, str]) -> None:
    state, address = server
    counts: dict[str, int] = {}
    one = connected(address, count=lambda kind, n: counts.update({kind: counts.get(kind, 0) + n}))
    first, second = one.embed(passages("b" * 250 + "a", "b" * 251))
    assert not np.array_equal(first, second)
    assert max(len(text) for request in state.requests for text in request["input"]) == 100
    assert (counts["split"], counts["spread"]) == (2, 0)


def test_a_text_of_200_000_characters_is_32_windows(server: tuple[Server, str]) -> None:
    state, address = server
    counts: dict[str, int] = {}
    one = connected(address, count=lambda kind, n: counts.update({kind: counts.get(kind, 0) + n}))
    before = len(state.requests)
    one.embed(passages("b" * 200_000 + "end"))
    asked = [text for request in state.requests[before:] for text in request["input"]]
    assert (len(asked), asked[-1][-3:], counts["spread"]) == (MOST_WINDOWS, "end", 1)


@pytest.mark.parametrize("body", [b"{}", b"[]", b"not json", b'{"data": [{"index": 0, "embedding": "abc"}]}'])
def test_answer_that_is_none_is_an_error(server: tuple[Server, str], body: bytes) -> None:
    state, address = server
    one = connected(address)
    state.body = body
    assert one.embed(passages("a")) == [Unscored(Reason.EMBEDDER_ERROR)]


def test_another_dimension_is_refused(server: tuple[Server, str]) -> None:
    state, address = server
    one = connected(address)
    state.dimension = 6
    assert one.embed(passages("a")) == [Unscored(Reason.EMBEDDER_ERROR)]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_stay_unscored(server: tuple[Server, str], value: float) -> None:
    state, address = server
    one = connected(address)
    state.value = value
    assert one.embed(passages("a")) == [Unscored(Reason.NON_FINITE)]


def test_huge_numbers_do_not_become_a_vector_of_zeros(server: tuple[Server, str]) -> None:
    state, address = server
    one = connected(address)
    state.value = 1e300
    (found,) = one.embed(passages("a"))
    assert not isinstance(found, Unscored)
    assert float(found @ found) == pytest.approx(1.0, abs=1e-5)


def test_start_without_endpoint_says_what_to_set() -> None:
    with pytest.raises(ModelError, match=r"embedding\.endpoint"):
        connect("", "", "")
    with pytest.raises(ModelError, match="does not answer"):
        connect("http://127.0.0.1:9/v1", "m", "", timeout_seconds=0.5)


def test_retry_budget_is_a_share_of_requests() -> None:
    budget = RetryBudget(share=0.5, most=2)
    assert [budget.retry() for _ in range(3)] == [True, True, False]
    budget.request()
    assert not budget.retry()
    budget.request()
    assert budget.retry()


def test_identity_names_endpoint_model_and_revision(server: tuple[Server, str]) -> None:
    _, address = server
    identities = {connected(address, revision=revision).identity for revision in ("", "2026-11")}
    assert len(identities) == 2
    assert all("some-model" in identity and "secret" not in identity for identity in identities)
