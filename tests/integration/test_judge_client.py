"""The client of the chat endpoint against a real HTTP server that misbehaves on cue."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from email.utils import formatdate

import pytest
from prometheus_client import CollectorRegistry

from consumer.decode import JUDGE_MARK, Decoder
from consumer.judge_settings import Judge
from consumer.judging.building import build_client
from consumer.judging.chat_client import JudgeClient
from consumer.judging.judge_metrics import JudgeMetrics
from consumer.settings import Decode
from metrics.llm.chat import ChatError, Reply
from metrics.outcome import Reason
from tests.integration.judge_server import (
    MODEL,
    Answer,
    Call,
    JudgeServer,
    Script,
    busy,
    completion,
    hanging,
    in_turn,
    judge_server,
    refusing,
)
from tests.processes import wait_until

MESSAGES = [{"role": "system", "content": "Judge."}, {"role": "user", "content": "Claim: 26 days"}]
SCHEMA: Mapping[str, object] = {"type": "object", "properties": {"verdict": {"type": "string"}}}
OK = Answer('{"verdict": "supported"}', usage=(40, 9))


def ok(call: Call) -> Answer:
    return OK


class Asking:
    """A client of one server, and what it exports."""

    def __init__(self, server: JudgeServer, **settings: object) -> None:
        self.registry = CollectorRegistry()
        self.spent = [0, 0]
        judge = Judge.model_validate(server.settings(**settings))
        metrics = JudgeMetrics(self.registry, MODEL, prompt_price=1.0, completion_price=2.0)
        self.client: JudgeClient = build_client(judge, metrics, self._spend)

    def _spend(self, calls: int, tokens: int) -> None:
        self.spent[0] += calls
        self.spent[1] += tokens

    def ask(self, seconds: float = 5.0) -> Reply:
        chat = self.client.until(time.monotonic() + seconds)
        return chat.complete(MESSAGES, max_tokens=50, schema=SCHEMA)

    def fails(self, seconds: float = 5.0) -> Reason:
        with pytest.raises(ChatError) as caught:
            self.ask(seconds)
        return caught.value.reason

    def value(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"groundwatch_{name}", {"judge": MODEL} | labels) or 0.0


def test_a_request_and_what_is_counted_of_it() -> None:
    with judge_server(ok) as server:
        asking = Asking(server, api_key="s3cret", extra={"top_k": 1})
        reply = asking.ask()
        (call,) = server.calls
    assert reply == Reply('{"verdict": "supported"}', "stop", 40, 9)
    assert call.headers["Authorization"] == "Bearer s3cret"
    assert call.body["messages"] == MESSAGES
    wanted = {"model": MODEL, "temperature": 0, "max_tokens": 50, "user": JUDGE_MARK, "stream": False, "top_k": 1}
    assert wanted.items() <= call.body.items()
    assert call.body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert asking.value("judge_requests_total", outcome="ok") == 1
    assert asking.value("judge_requests_total", outcome="timeout") == 0
    assert (
        asking.value("judge_tokens_total", kind="prompt"),
        asking.value("judge_tokens_total", kind="completion"),
    ) == (
        40,
        9,
    )
    assert asking.value("judge_cost_total") == pytest.approx(0.040 + 0.018)
    assert asking.value("judge_seconds_count") == 1
    assert asking.spent == [1, 49]


def test_the_judges_own_traffic_is_known_on_the_topic() -> None:
    """What a gateway logs of a judge call is left out of scoring, as record or inside of one."""
    with judge_server(ok) as server:
        Asking(server).ask()
        (call,) = server.calls
    import orjson

    decoder = Decoder(Decode())
    logged = {"request": call.body, "response": orjson.loads(completion(OK)), "contexts": ["x"], "answer": "y"}
    for record in (dict(call.body) | {"contexts": [], "answer": "a"}, logged):
        assert decoder.decode(orjson.dumps(record), fallback_id="x", broker_time=1.0).ignored


@pytest.mark.parametrize(
    "retry_after", [lambda: "1", lambda: formatdate(time.time() + 2, usegmt=True)], ids=["seconds", "date"]
)
def test_retry_after_is_honoured_by_everybody(retry_after: Callable[[], str]) -> None:
    """Field case 28. A date has whole seconds: two from now are between one and two."""
    refused: list[float] = []

    def refuse(call: Call) -> Answer:
        refused.append(time.monotonic())
        return busy(retry_after())(call)

    with judge_server(in_turn(refuse, then=ok)) as server:
        asking = Asking(server)
        first = threading.Thread(target=asking.ask, args=(30.0,))
        first.start()
        wait_until(lambda: asking.value("judge_requests_total", outcome="busy") == 1, 20, "refused")
        time.sleep(0.2)  # it is counted a moment before it is heeded
        asking.ask(30.0)
        first.join()
        _, *later = server.calls
    assert [call.came - refused[0] >= 0.9 for call in later] == [True, True]
    assert asking.value("judge_requests_total", outcome="busy") == 1


def test_a_pause_beyond_the_deadline_is_busy_at_once() -> None:
    with judge_server(busy("600")) as server:
        asking = Asking(server)
        begun = time.monotonic()
        assert asking.fails() is Reason.JUDGE_BUSY
        assert asking.fails() is Reason.JUDGE_BUSY
        assert time.monotonic() - begun < 5
        assert len(server.calls) == 1, "the second caller must not even ask"


def test_a_hang_ends_at_the_deadline_and_opens_the_circuit() -> None:
    with judge_server(hanging) as server:
        asking = Asking(server)
        for _ in range(3):
            begun = time.monotonic()
            assert asking.fails(0.4) is Reason.JUDGE_TIMEOUT
            assert 0.3 < time.monotonic() - begun < 3
        assert asking.client.circuit.is_open
        begun = time.monotonic()
        assert asking.fails(5) is Reason.JUDGE_BUSY
        assert time.monotonic() - begun < 2
        assert len(server.calls) == 3
        server.script = ok
        time.sleep(1.1)
        assert asking.client.circuit.probe_is_due()
        asking.client.probe(2)
        assert asking.ask().text == OK.text
        assert server.calls[3].body["max_tokens"] <= 8, "the probe is small"
        assert server.calls[3].body["user"] == JUDGE_MARK


def test_one_slow_answer_with_many_metrics_opens_no_circuit() -> None:
    with judge_server(hanging) as server:
        asking = Asking(server)
        deadline = time.monotonic() + 0.4
        for _ in range(5):
            with pytest.raises(ChatError) as caught:
                asking.client.until(deadline).complete(MESSAGES, max_tokens=50, schema=SCHEMA)
            assert caught.value.reason is Reason.JUDGE_TIMEOUT
        assert len(server.calls) == 1, "what has no time left is not sent"
        assert not asking.client.circuit.is_open
        assert asking.value("judge_requests_total", outcome="timeout") == 1


def test_a_reply_that_drips_ends_at_the_deadline() -> None:
    with judge_server(lambda call: Answer("x" * 200, drip=0.05)) as server:
        begun = time.monotonic()
        assert Asking(server).fails(0.5) is Reason.JUDGE_TIMEOUT
        assert time.monotonic() - begun < 4


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        (refusing(500, "out of memory"), "server_error"),
        (refusing(503, "loading model"), "busy"),
        (lambda call: Answer(OK.text, broken=True), "broken"),
    ],
)
def test_a_passing_fault_is_tried_again(script: Script, outcome: str) -> None:
    with judge_server(in_turn(script, then=ok)) as server:
        asking = Asking(server)
        assert asking.ask().text == OK.text
    assert asking.value("judge_requests_total", outcome=outcome) == 1
    assert asking.value("judge_requests_total", outcome="ok") == 1


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (refusing(400, "this model's context length is 4096 tokens"), Reason.JUDGE_ERROR),
        (refusing(401, "no such key"), Reason.JUDGE_ERROR),
        (refusing(422, "messages: field required"), Reason.JUDGE_ERROR),
        (lambda call: Answer(raw=b"<html>gateway</html>"), Reason.JUDGE_PARSE),
        (lambda call: Answer(raw=b'{"error": {"message": "upstream"}}'), Reason.JUDGE_PARSE),
        (lambda call: Answer(raw=b'{"choices": []}'), Reason.JUDGE_PARSE),
    ],
)
def test_a_lasting_fault_is_not_tried_again(script: Script, reason: Reason) -> None:
    """Field case 28: a deterministic error, retried on every event, became gateway timeouts."""
    with judge_server(in_turn(ok, then=script)) as server:
        asking = Asking(server)
        asking.ask()
        assert asking.fails() is reason
        assert len(server.calls) == 2


def test_retries_have_one_budget_for_all_answers() -> None:
    """Ten at the start and a fifth of the requests: a failing server does not get several times the load."""
    with judge_server(refusing(429, "slow down")) as server:
        asking = Asking(server)
        asking.client._sleep = lambda seconds: None
        for _ in range(100):
            assert asking.fails() is Reason.JUDGE_BUSY
        assert len(server.calls) <= 100 + 10 + 20


@pytest.mark.parametrize(
    ("refused", "structured"),
    [((), "json_schema"), (("json_schema",), "json_object"), (("json_schema", "json_object"), "text")],
)
def test_what_the_server_takes_is_found_out_once(refused: tuple[str, ...], structured: str) -> None:
    def script(call: Call) -> Answer:
        kind = call.body.get("response_format", {}).get("type", "text")
        message = f"'response_format.type' {kind} is not supported"
        return refusing(400, message)(call) if kind in refused else OK

    with judge_server(script) as server:
        asking = Asking(server)
        asking.ask()
        first = len(server.calls)
        for _ in range(5):
            asking.ask()
        assert first == len(refused) + 1
        assert len(server.calls) == first + 5
    assert asking.client.dialect.structured == structured


def test_a_newer_model_gets_its_own_names() -> None:
    def script(call: Call) -> Answer:
        if "max_tokens" in call.body:
            return refusing(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")(call)
        if "temperature" in call.body:
            return refusing(400, "Unsupported value: 'temperature' does not support 0 with this model.")(call)
        return OK

    with judge_server(script) as server:
        asking = Asking(server)
        asking.ask()
        asking.ask()
        assert len(server.calls) == 4
        assert server.calls[-1].body["max_completion_tokens"] == 50
        assert "temperature" not in server.calls[-1].body


@pytest.mark.parametrize("said", ["Unrecognized request argument supplied: cache_prompt", "bad request"])
@pytest.mark.parametrize("structured", ["auto", "json_schema"])
def test_the_prompt_cache_is_off_where_the_server_knows_it(said: str, structured: str) -> None:
    """Kept prompts make llama.cpp round otherwise, and a second run differ; who refuses the field is not sent it."""

    def strict(call: Call) -> Answer:
        return refusing(400, said)(call) if "cache_prompt" in call.body else OK

    with judge_server(strict) as server:
        asking = Asking(server, structured=structured)
        for _ in range(3):
            asking.ask()
        assert [call.body.get("cache_prompt") for call in server.calls] == [False, None, None, None]
        assert asking.client.dialect.structured == "json_schema"


def test_what_another_call_found_out_meanwhile_is_used() -> None:
    """A refusal that comes back after another call went through is of the request itself: it is not written anew."""
    came, go_on = threading.Event(), threading.Event()

    def script(call: Call) -> Answer:
        if call.number == 0:
            came.set()
            assert go_on.wait(20)
            return refusing(400, "boom")(call)
        return OK

    with judge_server(script) as server:
        asking = Asking(server, structured="json_schema")
        reasons: list[Reason] = []
        first = threading.Thread(target=lambda: reasons.append(asking.fails(20.0)))
        first.start()
        assert came.wait(20)
        asking.ask()
        go_on.set()
        first.join()
        assert reasons == [Reason.JUDGE_ERROR]
        assert len(server.calls) == 2


def test_extra_fields_have_the_last_word() -> None:
    with judge_server(ok) as server:
        Asking(server, extra={"cache_prompt": True}).ask()
        assert server.calls[0].body["cache_prompt"] is True


def test_a_refusal_of_the_request_itself_changes_nothing() -> None:
    with judge_server(in_turn(*[refusing(400, "the prompt is too long")] * 4, then=ok)) as server:
        asking = Asking(server)
        assert asking.fails() is Reason.JUDGE_ERROR
        asking.ask()
        assert asking.client.dialect.structured == "json_schema"


def test_tokens_are_estimated_where_the_server_does_not_count() -> None:
    with judge_server(lambda call: Answer("支持" * 10, usage=None)) as server:
        reply = Asking(server).ask()
    assert reply.completion_tokens == 20
    assert 0 < reply.prompt_tokens < 20


def test_nobody_there() -> None:
    with judge_server() as server:
        asking = Asking(server)
    assert asking.fails(10.0) is Reason.JUDGE_ERROR
    assert asking.value("judge_requests_total", outcome="unreachable") >= 1
