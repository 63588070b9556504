"""An OpenAI-compatible chat endpoint as a `Chat`: one deadline an answer, one retry budget for all of them.

The retries here are a loop of our own: what it decides on (the deadline of the answer, the budget shared by all
answers, a pause that the server asks of everybody) is not what a retry library keeps for one function.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx

from consumer.judging.circuit import Circuit
from consumer.judging.dialect import REFUSALS, Dialect, adapted, request_body
from consumer.judging.judge_metrics import JudgeMetrics
from consumer.judging.replies import Failure, Outcome, estimated_tokens, read_refusal, read_reply
from metrics.endpoint import RetryBudget
from metrics.llm.chat import ChatError, Message, Reply
from metrics.outcome import Reason

log = logging.getLogger(__name__)

ATTEMPTS = 4
FIRST_WAIT = 0.25
LONGEST_WAIT = 8.0
CONNECT_SECONDS = 5.0
MOST_BYTES = 4_000_000
PROBE = ({"role": "user", "content": "Reply with the word ok."},)
PROBE_TOKENS = 4
Spent = Callable[[int, int], None]
"""Told of every request: calls, tokens."""


def unlimited(calls: int, tokens: int) -> None:
    """A `Spent` that keeps nothing."""


class JudgeClient:
    """`POST {base}/chat/completions`, for many threads at once. All clocks are passed in; `now` is monotonic."""

    def __init__(
        self,
        http: httpx.Client,
        model: str,
        *,
        metrics: JudgeMetrics,
        circuit: Circuit,
        dialect: Dialect | None = None,
        extra: Mapping[str, Any] | None = None,
        spent: Spent = unlimited,
        retries: RetryBudget | None = None,
        now: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`http` has the endpoint as its base URL; `dialect` None finds out what the server takes."""
        self.model = model
        self.circuit = circuit
        self._http = http
        self._metrics = metrics
        self._dialect = dialect or Dialect()
        self._extra = dict(extra or {})
        self._spent = spent
        self._retries = retries or RetryBudget()
        self._now = now
        self._wall_clock = wall_clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._hold_until = 0.0
        self._told: set[tuple[Outcome, int]] = set()

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    def until(self, deadline: float) -> TimedChat:
        """A `Chat` whose calls all end by `deadline` (of `now`)."""
        return TimedChat(self, deadline)

    def complete(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        schema: Mapping[str, object] | None,
        deadline: float,
    ) -> Reply:
        """One reply by `deadline`.

        Raises:
            ChatError: `judge_timeout`; `judge_busy` (it says so, or the circuit is open); `judge_parse` (what came back
                is no chat completion); `judge_error`.
        """
        self._retries.request()
        for attempt in range(1, ATTEMPTS + 1):
            self._wait_for_our_turn(deadline)
            if self._now() >= deadline:
                # What was never sent says nothing of the server: one slow answer must not count once for each metric.
                raise ChatError(Reason.JUDGE_TIMEOUT, "no time was left to ask")
            result = self._adapting(messages, max_tokens, schema, deadline)
            if isinstance(result, Reply):
                return result
            wait = max(result.hold_seconds, min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * random.uniform(0.5, 1.0))
            no_more = not result.again or attempt == ATTEMPTS or self._now() + wait >= deadline
            if no_more or self.circuit.is_open or not self._retries.retry():
                raise ChatError(result.reason, result.detail)
            self._sleep(wait)
        raise AssertionError("unreachable")

    def probe(self, seconds: float) -> None:
        """A small request without an event, while the circuit is open; its success closes the circuit."""
        result = self._request(PROBE, PROBE_TOKENS, None, self._dialect, self._now() + seconds)
        if isinstance(result, Failure) and result.is_of_the_server:
            self.circuit.probe_failed()
        else:
            self.circuit.succeeded()
            log.warning("the judge answers again")

    def _wait_for_our_turn(self, deadline: float) -> None:
        """Nobody calls while the circuit is open, nor before the time that the server last asked for."""
        if self.circuit.is_open:
            raise ChatError(Reason.JUDGE_BUSY, "the judge has failed several times and is left alone for a while")
        wait = self._hold_until - self._now()
        if wait <= 0:
            return
        if self._now() + wait >= deadline:
            raise ChatError(Reason.JUDGE_BUSY, f"the judge asks to be left alone for {wait:.0f} s")
        self._sleep(wait)

    def _adapting(
        self, messages: Sequence[Message], max_tokens: int, schema: Mapping[str, object] | None, deadline: float
    ) -> Reply | Failure:
        """One request, and more where the server turns out to want it written otherwise."""
        dialect = self._dialect
        while True:
            sent = self._now()
            result = self._request(messages, max_tokens, schema, dialect, deadline)
            if isinstance(result, Reply):
                self._settle(dialect, schema is not None)
                return self._succeeded(result, messages)
            other = self._other(dialect, result, schema is not None)
            if other is None or self._now() >= deadline:
                self._failed(result, sent)
                return result
            dialect = other

    def _other(self, dialect: Dialect, refused: Failure, with_schema: bool) -> Dialect | None:
        """How to write the request next; what another call found out meanwhile comes first."""
        known = self._dialect
        if known.settled and not dialect.settled:
            if known != replace(dialect, settled=True):
                return known if refused.status in REFUSALS else None
            dialect = known
        return adapted(dialect, refused.status, refused.detail, with_schema)

    def _settle(self, dialect: Dialect, with_schema: bool) -> None:
        with self._lock:
            changed = dialect != self._dialect
            # Only a request with a schema shows whether the server takes one.
            self._dialect = replace(dialect, settled=dialect.settled or with_schema)
        if changed:
            log.info(
                "the judge takes %s, %s%s", dialect.structured, dialect.limit,
                "" if dialect.temperature else ", and no temperature: its verdicts may differ from run to run",
            )  # fmt: skip

    def _succeeded(self, reply: Reply, messages: Sequence[Message]) -> Reply:
        self.circuit.succeeded()
        if not reply.prompt_tokens and not reply.completion_tokens:
            reply = replace(
                reply, prompt_tokens=_guess(m["content"] for m in messages), completion_tokens=_guess([reply.text])
            )
        self._metrics.tokens(reply.prompt_tokens, reply.completion_tokens)
        self._spent(0, reply.prompt_tokens + reply.completion_tokens)
        return reply

    def _failed(self, failure: Failure, sent: float) -> None:
        if failure.outcome is Outcome.BUSY:
            with self._lock:
                self._hold_until = max(self._hold_until, self._now() + failure.hold_seconds)
        opened = failure.is_of_the_server and self.circuit.failed(sent)
        kind = (failure.outcome, failure.status)
        if opened:
            log.warning("the judge is left alone for a while, answers go unjudged: %s", failure.detail)
        elif kind not in self._told:
            self._told.add(kind)
            log.warning("the judge: %s (told once; see judge_requests_total)", failure.detail)

    def _request(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        schema: Mapping[str, object] | None,
        dialect: Dialect,
        deadline: float,
    ) -> Reply | Failure:
        begun = self._now()
        body = request_body(dialect, self.model, messages, max_tokens, schema, self._extra)
        result = self._post(body, deadline)
        outcome = result.outcome if isinstance(result, Failure) else Outcome.OK
        self._metrics.request(outcome, self._now() - begun)
        self._spent(1, 0)
        return result

    def _post(self, body: Mapping[str, Any], deadline: float) -> Reply | Failure:
        left = deadline - self._now()
        if left <= 0:
            return _late()
        timeout = httpx.Timeout(left, connect=min(left, CONNECT_SECONDS))
        content = bytearray()
        try:
            with self._http.stream("POST", "chat/completions", json=body, timeout=timeout) as response:
                for part in response.iter_bytes():
                    content += part
                    # httpx times single reads: a server that sends a byte now and then would never be late.
                    if self._now() >= deadline:
                        return _late()
                    if len(content) > MOST_BYTES:
                        return Failure(Outcome.UNUSABLE, Reason.JUDGE_PARSE, f"a reply above {MOST_BYTES} bytes")
        except httpx.ConnectTimeout:
            return Failure(Outcome.UNREACHABLE, Reason.JUDGE_TIMEOUT, "no connection in time", again=True)
        except httpx.TimeoutException:
            return _late()
        except httpx.ConnectError as error:
            return Failure(Outcome.UNREACHABLE, Reason.JUDGE_ERROR, f"no connection: {error}", again=True)
        except (httpx.HTTPError, httpx.StreamError) as error:
            detail = f"the connection broke: {type(error).__name__}: {error}"
            return Failure(Outcome.BROKEN, Reason.JUDGE_ERROR, detail, again=True)
        if response.status_code == 200:
            return read_reply(bytes(content))
        return read_refusal(response.status_code, bytes(content), response.headers, self._wall_clock)


@dataclass(frozen=True, slots=True)
class TimedChat:
    """A `Chat` over a shared client, for one answer: what is not there by `deadline` is `judge_timeout`."""

    client: JudgeClient
    deadline: float

    @property
    def model(self) -> str:
        return self.client.model

    def complete(self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, object] | None) -> Reply:
        """Raises: ChatError."""
        return self.client.complete(messages, max_tokens, schema, self.deadline)


def _late() -> Failure:
    return Failure(Outcome.TIMEOUT, Reason.JUDGE_TIMEOUT, "no reply in time")


def _guess(texts: Any) -> int:
    return sum(estimated_tokens(len(t), sum(not c.isascii() for c in t)) for t in texts)
