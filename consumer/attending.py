"""The loop that has the monitor look for changes, drift and reasons, beside the agent that reads scores."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from consumer.heap import give_heap_back

log = logging.getLogger(__name__)

ATTEND_SECONDS = 5.0


async def attending(attend: Callable[[], None], wanted: Callable[[], bool], stop: asyncio.Event) -> None:
    """Call `attend` in a thread every few seconds while `wanted`, until `stop` is set or the task is cancelled. A fault
    is logged, and does not keep scores from being read. What a look took of the heap is given back."""
    while not stop.is_set():
        if wanted():
            try:
                await asyncio.to_thread(attend)
                await asyncio.to_thread(give_heap_back)
            except Exception:
                log.exception("changes, drift and their reasons could not be looked for")
        try:
            await asyncio.wait_for(stop.wait(), ATTEND_SECONDS)
        except TimeoutError:
            continue


async def given_up(loops: asyncio.Future[Any]) -> None:
    """Cancel loops that were gathered, and wait for their end: asyncio logs an error with a traceback of those that
    were cancelled and never asked for."""
    loops.cancel()
    await asyncio.gather(loops, return_exceptions=True)
