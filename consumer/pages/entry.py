"""Who may see the pages: a token, or a user that a reverse proxy names; and forms that only our own pages can send.

Nothing is kept on the server: a session is a signed cookie, good for `SESSION_SECONDS` and as long as the token.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from consumer.settings_listeners import SHORTEST_TOKEN, Pages, is_loopback

SESSION_SECONDS = 12 * 3600.0
SESSION_COOKIE = "groundwatch_session"
FORM_COOKIE = "groundwatch_form"
NAME_CHARACTERS = 80
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


class EntryError(Exception):
    """Nobody could be let in; one line that says which setting."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks. `name` is what a reverse proxy vouches for; empty where nobody does."""

    address: str
    name: str = ""


class Entry:
    """The rules of one listener. All comparisons of secrets take the same time whatever is wrong."""

    def __init__(
        self,
        pages: Pages,
        token: str,
        now: Callable[[], float] = time.time,
        shared_secret: Callable[[], bytes | None] = lambda: None,
    ) -> None:
        """`token`: empty where there is none. `now` is wall-clock time. `shared_secret`: what forms are signed with
        where there is no token, the same for every monitor; None while it cannot be had."""
        self.guarded = pages.guarded
        self.takes_token = bool(token)
        self._token = token.encode()
        # What is signed with the token stays good when the monitor is restarted, or another one takes over. So do
        # forms without a token, where there is a shared secret.
        self._key = _derived(self._token) if token else secrets.token_bytes(32)
        self._shared_secret = shared_secret
        self._form_key = self._key if token else None
        self._header = pages.user_header
        self._proxies = [ipaddress.ip_network(network) for network in pages.proxies]
        self._hosts = frozenset(host.casefold() for host in pages.hosts)
        self._loopback = is_loopback(pages.listen)
        self._now = now

    def knows_host(self, host: str) -> bool:
        """May a browser ask for this `Host`? On loopback a foreign name is a page elsewhere that had its own name point
        here (DNS rebinding)."""
        name = _without_port(host).casefold()
        if self._hosts:
            return name in self._hosts or name in _LOOPBACK_NAMES
        return name in _LOOPBACK_NAMES if self._loopback else bool(name)

    def visitor(self, address: str, headers: Mapping[str, str], cookies: Mapping[str, str]) -> Visitor | None:
        """Who this is; None for somebody who has to sign in first."""
        if self._header and self.is_proxy(address):
            name = headers.get(self._header, "").strip()[:NAME_CHARACTERS]
            if name:
                return Visitor(address, name)
        if not self.guarded:
            return Visitor(address)
        if self.takes_token:
            scheme, _, given = headers.get("Authorization", "").partition(" ")
            if scheme.casefold() == "bearer" and self.is_token(given.strip()):
                return Visitor(address)
            if self._is_session(cookies.get(SESSION_COOKIE, "")):
                return Visitor(address)
        return None

    def is_proxy(self, address: str) -> bool:
        try:
            peer = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(peer, "ipv4_mapped", None)
        return any((mapped or peer) in network for network in self._proxies)

    def is_token(self, given: str) -> bool:
        return self.takes_token and hmac.compare_digest(given.encode("utf-8", "replace"), self._token)

    def session(self) -> str:
        """A new session, for a cookie."""
        until = str(int(self._now() + SESSION_SECONDS))
        return f"{until}.{self._signed('session', until)}"

    def _is_session(self, cookie: str) -> bool:
        until, _, signature = cookie.partition(".")
        good = hmac.compare_digest(signature.encode("utf-8", "replace"), self._signed("session", until).encode())
        return good and until.isdecimal() and int(until) > self._now()

    def form_key(self, cookie: str) -> str:
        """What a form must carry for the browser that holds this cookie: no other site can read or guess it. The first
        time it may wait for the shared secret."""
        if self._form_key is None and (secret := self._shared_secret()) is not None:
            self._form_key = _derived(secret)
        return _signature(self._form_key or self._key, "form", cookie)

    def may_post(self, cookie: str, given: str, host: str, origin: str | None) -> bool:
        """Does a form come from a page of ours? (`Origin` is `null` from a page that sends no referrer, as ours do.)"""
        if origin is not None and origin != "null" and not self._is_own(origin, host):
            return False
        expected = self.form_key(cookie).encode()
        return bool(cookie) and hmac.compare_digest(given.encode("utf-8", "replace"), expected)

    def _is_own(self, origin: str, host: str) -> bool:
        name = urlsplit(origin).netloc.casefold()
        return name == host.casefold() or _without_port(name) in self._hosts

    def _signed(self, purpose: str, text: str) -> str:
        return _signature(self._key, purpose, text)


def _derived(secret: bytes) -> bytes:
    return hashlib.sha256(b"groundwatch pages\0" + secret).digest()


def _signature(key: bytes, purpose: str, text: str) -> str:
    return hmac.new(key, f"{purpose}\0{text}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def new_form_cookie() -> str:
    return secrets.token_urlsafe(24)


def read_token(pages: Pages) -> str:
    """The token of the settings or of their file; empty where there is none.

    Raises:
        EntryError: the file cannot be read, or holds less than a token.
    """
    if pages.token_file is None:
        return pages.token.get_secret_value()
    return _read(pages.token_file)


def _read(file: Path) -> str:
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise EntryError(f"pages.token_file: {file}: {getattr(error, 'strerror', None) or error}") from None
    if len(token) < SHORTEST_TOKEN:
        raise EntryError(
            f"pages.token_file: {file} holds {len(token)} characters; a token has {SHORTEST_TOKEN} or more"
        )
    return token


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
