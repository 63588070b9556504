"""ragas' own Faithfulness over a file of cases, one result a line; runs in ragas' environment, knows nothing of ours.

    PYTHON tests/bench/llm/ragas_child.py --cases FILE --out FILE --url http://host:port/v1 --model NAME

Needs `pip install ragas==0.4.3 "langchain-community<0.4"`. The path is the one of ragas' documentation: its metric of
`ragas.metrics.collections` on `llm_factory` with an OpenAI client (JSON mode), its own prompts, token limit and
retries; only the temperature is set to 0. Tokens are what the server says it used, of every response, retries among
them. ragas asks again in the same words where a reply was cut; at temperature 0 the reply is the same, so it is not
computed again, but its tokens count. Cases that FILE already has are left out, so a run that was interrupted goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TextIO

import httpx
import ragas
from openai import APIConnectionError, AsyncOpenAI
from ragas.llms import llm_factory
from ragas.metrics.collections import Faithfulness


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--url", required=True, nargs="+")
    parser.add_argument("--model", required=True)
    parser.add_argument("--parallel", type=int, default=2, help="answers at once on each server")
    parser.add_argument("--timeout", type=float, default=3600.0)
    chosen = parser.parse_args()
    asyncio.run(run(chosen))


USED: ContextVar[Counter[str]] = ContextVar("used")
"""Calls and tokens of the case that the current task is about."""


class Counting(httpx.AsyncBaseTransport):
    """Counts what the server says of every response, and answers a request that it has seen with what it saw."""

    def __init__(self) -> None:
        self._server = httpx.AsyncHTTPTransport()
        self._seen: dict[bytes, bytes] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        content = await request.aread()
        known = self._seen.get(content)
        if known is None:
            response = await self._server.handle_async_request(request)
            known = await response.aread()
            if response.status_code != 200:
                USED.get()["refused_calls"] += 1
                return response
            self._seen[content] = known
        usage = json.loads(known).get("usage") or {}
        used = USED.get()
        used["calls"] += 1
        used["prompt_tokens"] += usage.get("prompt_tokens", 0)
        used["completion_tokens"] += usage.get("completion_tokens", 0)
        return httpx.Response(200, headers={"content-type": "application/json"}, content=known, request=request)


async def run(chosen: argparse.Namespace) -> None:
    done = {json.loads(line)["case"] for line in chosen.out.open(encoding="utf-8")} if chosen.out.exists() else set()
    cases = [case for line in chosen.cases.open(encoding="utf-8") if (case := json.loads(line))["id"] not in done]
    left = iter(cases)
    http = httpx.AsyncClient(transport=Counting(), timeout=chosen.timeout)
    with chosen.out.open("a", encoding="utf-8") as out:
        workers = [work(left, url, chosen.model, http, out) for url in chosen.url for _ in range(chosen.parallel)]
        await asyncio.gather(*workers)


async def work(left: Iterator[dict[str, Any]], url: str, model: str, http: httpx.AsyncClient, out: TextIO) -> None:
    """Case after case of those that are left, each a line as soon as it is judged."""
    client = AsyncOpenAI(base_url=url, api_key="none", http_client=http, timeout=http.timeout)
    metric = Faithfulness(llm=llm_factory(model, client=client, temperature=0.0))
    for case in left:
        used: Counter[str] = Counter(calls=0, prompt_tokens=0, completion_tokens=0)
        USED.set(used)
        started = time.monotonic()
        try:
            result = await judged(metric, case)
        except APIConnectionError as problem:  # of the server and not of ragas: the next run asks again
            print(f"{case['id']} is left for the next run: {problem}", flush=True)
            continue
        seconds = round(time.monotonic() - started, 3)
        record = {"case": case["id"], "judge": f"ragas {ragas.__version__}", **result, **used, "seconds": seconds}
        out.write(json.dumps(record, ensure_ascii=False) + "\n")
        out.flush()


async def judged(metric: Any, case: dict[str, Any]) -> dict[str, Any]:
    """A score or why there is none."""
    try:
        result = await metric.ascore(
            user_input=case["question"], response=case["answer"], retrieved_contexts=case["contexts"]
        )
    except APIConnectionError:
        raise
    except Exception as problem:  # whatever ragas raises is a case that it did not score
        return {"score": None, "unscored": f"{type(problem).__name__}: {problem}"[:300]}
    if not math.isfinite(result.value):
        return {"score": None, "unscored": "not a number"}
    return {"score": result.value, "unscored": None}


if __name__ == "__main__":
    main()
