"""Sections on what the processes listen on: metrics and health, and the pages."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr, field_validator, model_validator

from consumer.settings_section import Section

SHORTEST_TOKEN = 16
"""Characters: a shorter one could be guessed."""
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_TRACE = "{trace_id}"


class Listen(Section):
    listen: str = "127.0.0.1:9108"

    @field_validator("listen")
    @classmethod
    def host_and_port(cls, value: str) -> str:
        host, _, port = value.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65535:
            raise ValueError(f"listen must be HOST:PORT, not {value!r}")
        return value


class ScorerMetrics(Listen):
    listen: str = "127.0.0.1:9108"


class MonitorMetrics(Listen):
    listen: str = "127.0.0.1:9109"


class MetricsSection(Section):
    scorer: ScorerMetrics = ScorerMetrics()
    monitor: MonitorMetrics = MonitorMetrics()


class Pages(Section):
    """The pages hold text of events: whoever is not on this machine has to say who they are."""

    listen: str = "127.0.0.1:9110"
    """Empty: no pages."""
    token: SecretStr = SecretStr("")
    token_file: Path | None = None
    user_header: str = ""
    """Header in which a reverse proxy names the user that it has let in."""
    proxies: tuple[str, ...] = ()
    """Networks that this header is believed from."""
    hosts: tuple[str, ...] = ()
    """Names under which browsers reach the pages, where they are not those of this machine's loopback."""
    trace_link: str = ""
    """Address of a trace elsewhere, with `{trace_id}` in it."""

    @field_validator("listen")
    @classmethod
    def host_and_port_or_nothing(cls, value: str) -> str:
        return Listen(listen=value).listen if value else value

    @field_validator("token")
    @classmethod
    def long_enough(cls, value: SecretStr) -> SecretStr:
        if 0 < len(value.get_secret_value()) < SHORTEST_TOKEN:
            raise ValueError(f"a token of fewer than {SHORTEST_TOKEN} characters could be guessed")
        return value

    @field_validator("user_header")
    @classmethod
    def name_of_a_header(cls, value: str) -> str:
        if value and not _HEADER.fullmatch(value):
            raise ValueError(f"{value!r} is no name of an HTTP header (for instance X-Forwarded-User)")
        return value

    @field_validator("proxies")
    @classmethod
    def networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            try:
                ipaddress.ip_network(network)
            except ValueError as error:
                raise ValueError(f"{error}; write 10.1.2.3 or 10.1.2.0/24") from None
        return value

    @field_validator("trace_link")
    @classmethod
    def address_with_a_place(cls, value: str) -> str:
        url = urlsplit(value)
        if value and (url.scheme not in ("http", "https") or not url.netloc or _TRACE not in value):
            raise ValueError(f"must be an address http(s)://... with {_TRACE} in it, not {value!r}")
        return value

    @model_validator(mode="after")
    def strangers_say_who_they_are(self) -> Pages:
        if self.token.get_secret_value() and self.token_file is not None:
            raise ValueError("token and token_file are both set; set one")
        if bool(self.user_header) != bool(self.proxies):
            raise ValueError("user_header and proxies belong together: the header is believed from these networks only")
        if self.listen and not is_loopback(self.listen) and not self.guarded:
            raise ValueError(
                f"listen is {self.listen}, which others can reach, and the pages show text of events: set token "
                "(GROUNDWATCH__PAGES__TOKEN) or token_file, or user_header and proxies, or listen on 127.0.0.1"
            )
        return self

    @property
    def guarded(self) -> bool:
        """Whoever asks must say who they are."""
        return bool(self.token.get_secret_value() or self.token_file is not None or self.user_header)


def is_loopback(listen: str) -> bool:
    """Does only this machine reach `HOST:PORT`?"""
    host = listen.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
