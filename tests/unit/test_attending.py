"""The loops beside the agent end quietly."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading

import pytest

from consumer.attending import attending, given_up


@pytest.mark.parametrize("at_work", [True, False], ids=["in the middle of a look", "between two looks"])
def test_loops_that_are_given_up_leave_no_error_behind(at_work: bool, caplog: pytest.LogCaptureFixture) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def look() -> None:
        begun.set()
        go_on.wait(5)

    async def run() -> None:
        stop = asyncio.Event()
        loops = asyncio.gather(attending(look, lambda: True, stop), attending(look, lambda: True, stop))
        if not at_work:
            go_on.set()
        await asyncio.to_thread(begun.wait, 5)
        await asyncio.sleep(0.05)
        await given_up(loops)
        go_on.set()

    with caplog.at_level(logging.ERROR, "asyncio"):
        asyncio.run(run())
        gc.collect()
    assert caplog.records == []
