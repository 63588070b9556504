"""Who is let in: tokens, sessions, the header of a proxy, names of hosts, and forms of our own pages only."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from consumer.pages.entry import SESSION_COOKIE, SESSION_SECONDS, Entry, EntryError, read_token
from consumer.settings_listeners import Pages

TOKEN = "correct horse battery"
OUTSIDE = {"listen": "0.0.0.0:9110"}


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def entry(clock: Clock | None = None, **settings: object) -> Entry:
    pages = Pages.model_validate(settings)
    return Entry(pages, read_token(pages), clock or Clock())


def test_on_loopback_nobody_has_to_sign_in() -> None:
    visitor = entry().visitor("127.0.0.1", {}, {})
    assert visitor is not None
    assert visitor.name == ""


@pytest.mark.parametrize("listen", ["0.0.0.0:9110", "[::]:9110", "10.1.2.3:9110", "monitor.example:9110"])
def test_beyond_loopback_the_settings_must_say_how_to_sign_in(listen: str) -> None:
    with pytest.raises(ValidationError, match=r"which others can reach.*set token"):
        Pages(listen=listen)
    assert Pages.model_validate({"listen": listen, "token": TOKEN}).guarded


@pytest.mark.parametrize("listen", ["127.0.0.1:1", "127.0.0.9:1", "[::1]:1", "localhost:1", ""])
def test_loopback_and_no_pages_need_nothing(listen: str) -> None:
    assert not Pages(listen=listen).guarded


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"token": "short"}, "fewer than 16 characters"),
        ({"user_header": "X-User"}, "belong together"),
        ({"proxies": ["10.0.0.0/8"]}, "belong together"),
        ({"user_header": "X User", "proxies": ["10.0.0.1"]}, "no name of an HTTP header"),
        ({"user_header": "X-User", "proxies": ["10.0.0.1/8"]}, "host bits set"),
        ({"trace_link": "javascript:alert(1)//{trace_id}"}, "must be an address"),
        ({"trace_link": "https://traces.example/"}, "with {trace_id} in it"),
        ({"token": TOKEN, "token_file": "/x"}, "both set"),
    ],
)
def test_settings_that_let_in_the_wrong_ones_are_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Pages.model_validate(settings)


def test_a_token_opens_and_nothing_else_does() -> None:
    guarded = entry(**OUTSIDE, token=TOKEN)
    assert guarded.visitor("10.0.0.1", {"Authorization": f"Bearer {TOKEN}"}, {}) is not None
    for header in ("", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer \udcff"):
        assert guarded.visitor("10.0.0.1", {"Authorization": header}, {}) is None
    assert not entry().is_token("")


def test_a_session_ends_and_cannot_be_made() -> None:
    clock = Clock()
    guarded = entry(clock, **OUTSIDE, token=TOKEN)
    cookies = {SESSION_COOKIE: guarded.session()}
    assert guarded.visitor("10.0.0.1", {}, cookies) is not None
    assert entry(clock, **OUTSIDE, token="another token that opens").visitor("10.0.0.1", {}, cookies) is None
    until, _, signature = cookies[SESSION_COOKIE].partition(".")
    for forged in (f"{int(until) + 1}.{signature}", f"{until}.", "", "x.y", f"٣{until}.{signature}"):
        assert guarded.visitor("10.0.0.1", {}, {SESSION_COOKIE: forged}) is None
    clock.at += SESSION_SECONDS + 1
    assert guarded.visitor("10.0.0.1", {}, cookies) is None


def test_a_session_outlives_a_restart_under_the_same_token() -> None:
    cookies = {SESSION_COOKIE: entry(**OUTSIDE, token=TOKEN).session()}
    assert entry(**OUTSIDE, token=TOKEN).visitor("10.0.0.1", {}, cookies) is not None


def test_the_header_is_believed_from_the_proxy_only() -> None:
    guarded = entry(**OUTSIDE, user_header="X-Forwarded-User", proxies=["10.1.0.0/16"])
    named = {"X-Forwarded-User": "wei"}
    visitor = guarded.visitor("10.1.2.3", named, {})
    assert visitor is not None
    assert visitor.name == "wei"
    assert guarded.visitor("::ffff:10.1.2.3", named, {}) == visitor.__class__("::ffff:10.1.2.3", "wei")
    assert guarded.visitor("10.2.2.3", named, {}) is None
    assert guarded.visitor("10.1.2.3", {}, {}) is None
    assert guarded.visitor("nonsense", named, {}) is None


def test_on_loopback_a_foreign_name_is_refused() -> None:
    local = entry()
    for host in ("localhost:9110", "127.0.0.1:9110", "[::1]:9110", "LOCALHOST"):
        assert local.knows_host(host)
    for host in ("evil.example:9110", "127.0.0.1.evil.example", "", "10.0.0.1:9110"):
        assert not local.knows_host(host)
    named = entry(hosts=["pages.example"])
    assert named.knows_host("pages.example:443")
    assert not named.knows_host("evil.example")


def test_only_a_form_of_ours_may_change_something() -> None:
    guarded = entry()
    key = guarded.form_key("cookie")
    host = "localhost:9110"
    assert guarded.may_post("cookie", key, host, None)
    assert guarded.may_post("cookie", key, host, "http://localhost:9110")
    # A page under no-referrer sends this of itself.
    assert guarded.may_post("cookie", key, host, "null")
    assert not guarded.may_post("cookie", key, host, "http://evil.example")
    assert not guarded.may_post("cookie", "", host, None)
    assert not guarded.may_post("another", key, host, None)
    assert not guarded.may_post("", guarded.form_key(""), host, None)
    assert not entry().may_post("cookie", key, host, None)


def test_a_token_file_is_read_or_named(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert read_token(Pages(token_file=file)) == TOKEN
    file.write_text("short\n")
    with pytest.raises(EntryError, match="holds 5 characters"):
        read_token(Pages(token_file=file))
    with pytest.raises(EntryError, match="No such file"):
        read_token(Pages(token_file=tmp_path / "absent"))
