"""Ports for services that are not up yet."""

from __future__ import annotations

import socket

from consumer.embedded import free_port


def test_no_port_is_given_out_twice() -> None:
    """A scorer and a monitor once got the same, and one of them could not listen."""
    given = [free_port() for _ in range(1000)]
    assert len(set(given)) == len(given)


def test_the_preferred_port_is_given_where_it_is_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        assert free_port(port) != port
    assert free_port(port) == port == free_port(port)
