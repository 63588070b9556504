"""A chat endpoint for tests: a real HTTP server in a thread that speaks the OpenAI protocol and misbehaves on cue.

What it says honestly comes from one rule: a claim is supported where the passages hold all its numbers, contradicted
where they hold other ones, not found where the claim has none. It answers every prompt of the judge.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "scripted-judge"


@dataclass(frozen=True)
class Call:
    """One request: its number from 0, its body, and when it came (`time.monotonic()`)."""

    number: int
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    came: float

    @property
    def prompt(self) -> str:
        return str(self.body["messages"][-1]["content"])


@dataclass(frozen=True)
class Answer:
    """What the server sends. `usage` None leaves the token counts out."""

    text: str = ""
    status: int = 200
    finish: str = "stop"
    headers: Mapping[str, str] = field(default_factory=dict)
    usage: tuple[int, int] | None = (100, 20)
    delay: float = 0.0
    hang: bool = False
    """Say nothing until the server is closed."""
    drip: float = 0.0
    """Seconds between single bytes of the body."""
    broken: bool = False
    """Close the connection in the middle of the body."""
    raw: bytes | None = None
    """The whole body, in place of a chat completion."""


Script = Callable[[Call], Answer]


@dataclass
class JudgeServer:
    """`url` is the base URL; `script` may be changed while it runs; `calls` are those that arrived."""

    url: str
    script: Script
    calls: list[Call] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    closed: threading.Event = field(default_factory=threading.Event)

    def settings(self, **changes: Any) -> dict[str, Any]:
        """The section `[judge]` for this server."""
        return {"kind": "llm", "url": self.url, "model": MODEL, "timeout_seconds": 5.0} | changes


def honest(call: Call) -> Answer:
    """What a good judge would say."""
    return Answer(json.dumps(said(call.prompt), ensure_ascii=False))


def said(prompt: str) -> dict[str, Any]:
    """The reply to a prompt of the judge, as an object."""
    passages = within(prompt, "passages") or within(prompt, "资料")
    if "\nClaims:" in prompt:
        claims = re.findall(r"^(\d+)\. (.+)$", prompt.partition("\nClaims:")[2], re.MULTILINE)
        return {"claims": [{"id": int(number), **_verdict(claim, passages)} for number, claim in claims]}
    if (claim := re.search(r"^(?:Claim: |说法：)(.+)$", prompt, re.MULTILINE)) is not None:
        verdict = _verdict(claim[1], passages)
        return in_form(verdict, prompt)
    if (count := re.search(r"Write (\d+) different questions", prompt)) is not None:
        answer = within(prompt, "answer").strip()
        return {
            "questions": [
                {"id": n + 1, "question": f"What about {answer.rstrip('.')}?", "evasive": False}
                for n in range(int(count[1]))
            ]
        }
    if "<answer" in prompt:
        sentences = re.findall(r"^(\d+)\. (.+)$", within(prompt, "answer"), re.MULTILINE)
        return {"statements": [{"id": int(number), "text": text} for number, text in sentences]}
    if passages:
        numbers = re.findall(r"^\[(\d+)\]", passages, re.MULTILINE)
        return {"passages": [{"id": int(number), "useful": True} for number in numbers]}
    return {"reply": "ok"}


def within(prompt: str, tag: str) -> str:
    """The text between the fences of `tag`; empty where there are none."""
    found = re.search(rf"<{tag} [^>]*>\n(.*)\n</{tag} ", prompt, re.DOTALL)
    return found[1] if found else ""


def _verdict(claim: str, passages: str) -> dict[str, Any]:
    wanted, there = re.findall(r"\d+", claim), set(re.findall(r"\d+", passages))
    verdict = "not_found" if not wanted else "supported" if there.issuperset(wanted) else "contradicted"
    quote = next((line.partition("] ")[2] for line in passages.splitlines() if set(wanted) & set(line.split())), "")
    return {"reason": "by its numbers", "verdict": verdict, "quote": quote}


def in_form(verdict: Mapping[str, Any], prompt: str) -> dict[str, Any]:
    """The same opinion, in the form that the prompt asks for: a verdict, what is wrong with it, or what confirms it."""
    if '"problem"' in prompt:
        problem = {"supported": "none", "contradicted": "different", "not_found": "missing"}[verdict["verdict"]]
        return {"detail": "by its numbers", "problem": problem}
    if '"found"' in prompt:
        found = verdict["verdict"] == "supported"
        return {"quote": verdict["quote"] if found else "none", "found": found}
    return dict(verdict)


def hanging(call: Call) -> Answer:
    return Answer(hang=True)


def busy(seconds: str) -> Script:
    """429 with Retry-After."""
    return lambda call: Answer(status=429, headers={"Retry-After": seconds}, raw=b'{"error": {"message": "slow down"}}')


def refusing(status: int, message: str) -> Script:
    return lambda call: Answer(status=status, raw=json.dumps({"error": {"message": message}}).encode())


def in_turn(*scripts: Script, then: Script = honest) -> Script:
    """One script a call, then another for all that follow."""
    return lambda call: (scripts[call.number] if call.number < len(scripts) else then)(call)


def reworded(change: Callable[[str], str], **answer: Any) -> Script:
    """What is honest, with its text changed."""
    return lambda call: replace(Answer(change(honest(call).text)), **answer)


@contextmanager
def judge_server(script: Script = honest) -> Iterator[JudgeServer]:
    """A server on a free port; hanging calls are let go when the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            with judge.lock:
                call = Call(len(judge.calls), json.loads(content), dict(self.headers), time.monotonic())
                judge.calls.append(call)
            if self.path != "/v1/chat/completions":
                self._send(Answer(status=404, raw=b"no such path"))
                return
            answer = judge.script(call)
            if answer.delay:
                judge.closed.wait(answer.delay)
            if answer.hang:
                judge.closed.wait()
                self.close_connection = True
                return
            self._send(answer)

        def do_GET(self) -> None:
            self._send(Answer(raw=json.dumps({"data": [{"id": MODEL}]}).encode()))

        def _send(self, answer: Answer) -> None:
            body = completion(answer) if answer.raw is None else answer.raw
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if answer.broken:
                self.wfile.write(body[: len(body) // 2])
                self.close_connection = True
                return
            if not answer.drip:
                self.wfile.write(body)
                return
            for place in range(len(body)):
                self.wfile.write(body[place : place + 1])
                self.wfile.flush()
                if judge.closed.wait(answer.drip):
                    return

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    judge = JudgeServer(f"http://127.0.0.1:{server.server_address[1]}/v1", script)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="judge-server", daemon=True)
    thread.start()
    try:
        yield judge
    finally:
        judge.closed.set()
        server.shutdown()
        server.server_close()
        thread.join(10)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away at its deadline is what these tests are about."""


def completion(answer: Answer) -> bytes:
    usage = {}
    if answer.usage is not None:
        prompt, reply = answer.usage
        usage = {"usage": {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply}}
    message = {"role": "assistant", "content": answer.text}
    choice = {"index": 0, "message": message, "finish_reason": answer.finish}
    return json.dumps({"id": "c", "object": "chat.completion", "model": MODEL, "choices": [choice], **usage}).encode()
