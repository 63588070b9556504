from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from consumer.decoding.reasons import DecodeError
from consumer.redacting.check_digits import is_card, is_chinese_resident_id, is_iban, is_spanish_id, is_taiwan_id
from consumer.redaction import Redactor
from consumer.settings import Redaction
from metrics.event import Chunk, Event, Turn

REDACTOR = Redactor(Redaction())


def event(question: str = "", answer: str = "", *contexts: str, **more: Any) -> Event:
    return Event("evt-1", 0.0, question, tuple(Chunk(text) for text in contexts), answer, **more)


def redacted(text: str, redactor: Redactor = REDACTOR) -> str:
    question = redactor.redact(event(text)).question
    assert question is not None
    return question


PERSONAL = [
    ("EMAIL", [
        "alice@example.com", "alice.b+news@mail.example.co.uk", "o'brien@example.ie", "ＡＬＩＣＥ＠example.com",
        "josé.núñez@example.es", "a_b@x-y.example.museum",
    ]),
    ("PHONE", [
        # China
        "13812345678", "138 1234 5678", "138-1234-5678", "+86 138 1234 5678", "+8613812345678", "0086-138-1234-5678",
        "86 13812345678", "8613812345678", "１３８１２３４５６７８", "010-12345678", "0755-8888 8888", "(021)12345678",
        "（021）12345678", "+86 (010) 1234 5678", "400-820-8820", "400-8208-820",
        # North America
        "(415) 555-2671", "415-555-2671", "415.555.2671", "1-415-555-2671", "+1 415 555 2671", "+14155552671",
        # United Kingdom
        "+44 20 7946 0958", "+44 (0)20 7946 0958", "020 7946 0958", "(020) 7946 0958", "07700 900123", "07700900123",
        "0161 496 0000", "01632 960001",
        # Europe
        "+49 30 123456", "030 1234567", "0151 23456789", "+33 1 23 45 67 89", "01 23 45 67 89", "+34 612 34 56 78",
        "612 34 56 78", "+31 6 12345678", "06-12345678", "+39 06 1234 5678", "+353 1 234 5678",
        # elsewhere
        "+852 9123 4567", "+91 98765 43210", "+65 6123 4567", "+81 3-1234-5678",
    ]),
    ("CARD", [
        "4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111", "5500 0000 0000 0004", "378282246310005",
        "3782 822463 10005", "6222021234567890128", "6011 0009 9013 9424", "3530111333300000", "30569309025904",
        "4222222222222", "6799990100000000019", "２２２３００３１２２００３２２２",
    ]),
    ("ID", [
        "11010519491231002X", "11010519491231002x", "110105 19491231 002X", "440524188001010014",  # China
        "A123456(3)", "A123456（3）", "AB987654(3)",  # Hong Kong
        "A123456789",  # Taiwan
        "123-45-6789", "AB 12 34 56 C", "AB123456C",  # United States, United Kingdom
        "12345678Z", "12.345.678-Z", "X1234567L", "Y-1234567-X",  # Spain
        "GB29NWBK60161331926819", "GB29 NWBK 6016 1331 9268 19", "DE89 3704 0044 0532 0130 00",
        "MT84MALT011000012345MTLCAST001S", "LI21 0881 0000 2324 013A A",
    ]),
]  # fmt: skip
AROUND: list[Callable[[str], str]] = [
    lambda value: value,
    lambda value: f"Please note {value}, thank you.",
    lambda value: f"（{value}）",
    lambda value: f"我的号码是 {value}。",
    lambda value: f"第一行\n{value}\n第二行",
]


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, values in PERSONAL for value in values])
def test_a_personal_value_becomes_one_token(kind: str, value: str) -> None:
    for around in AROUND:
        assert redacted(around(value)) == around(f"[{kind}-1]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tel 13812345678,13912345678", "tel [PHONE-1],[PHONE-2]"),
        ("电话13812345678转12", "电话[PHONE-1]转12"),
        ("邮箱alice@example.com，电话13812345678", "邮箱[EMAIL-1]，电话[PHONE-1]"),
        ("phone: 5551234567", "phone: [PHONE-1]"),
        ("座机号码：62751234", "座机号码：[PHONE-1]"),
        ("1234 4111 1111 1111 1111 12/27", "1234 [CARD-1] 12/27"),
        ("HKID A1234563", "HKID [ID-1]"),
        ("SSN 123456789", "SSN [ID-1]"),
        ("护照号码：E12345678", "护照号码：[ID-1]"),
        ("<alice@example.com>;bob@example.com", "<[EMAIL-1]>;[EMAIL-2]"),
        ("see alice@example.com.", "see [EMAIL-1]."),
    ],
)
def test_personal_values_in_running_text(text: str, expected: str) -> None:
    assert redacted(text) == expected


ORDINARY = [
    "order 20261129000123", "订单号 13812345678", "订单编号：13812345678", "order number 4111111111111111",
    "order no. 020 7946 0958", "version 2.10.3-rc1", "v1.2.3.4567", "Python 3.11.7", "2026-11-29 10:00:00",
    "2026-11-29T10:00:00.123456Z", "29/11/2026", "2026年11月29日", "20261129103000", "10:30-11:45", "2019-2026",
    "1990 2000 2010 2020", "$1,234,567.89", "1,234,567", "1 234 567", "5000000元", "价格 13800000000元", "¥13812345678",
    "12500.00 EUR", "978-0-306-40615-7", "9780306406157", "0-306-40615-2", "ISSN 2049-3630",
    "3.14159265358979323846", "0.4111111111111111", "1760000000", "1760000000000", "1760000000000000000",
    "550e8400-e29b-41d4-a716-446655440000", "4bf92f3577b34da6a3ce929d0e0e4736", "00:1B:44:11:3A:B7",
    "192.168.100.200", "51.507351, -0.127758", "116.397428,39.90923", "123456", "1234567", "123456789",
    "page 12-345", "B0812345678", "SKU-12345678", "12345678A", "A1234567", "A123456788", "666-12-3456", "000-12-3456",
    "912-34-5678", "123-00-6789", "123-45-0000", "1234-5678-9012-3456", "4111 1111 1111 1112", "110105194912310021",
    "110105199913310025", "GB29 NWBK 6016 1331 9268 18", "GB 12 34 56 C", "DE", "user@localhost", "@mention 12",
    "a@b", "1e10", "3840x2160", "+5 %", "+1000000", "GDP 17963170000000", "100 200 300 400", "§ 12 (3) 2026",
    "ISO 9001:2015", "RFC 2119", "id 4243557355858281972", "ISBN 4-04-425304-82",
    "ISBN 4-00-115702-8", "HTTP 404", "A4 210 x 297", "0x7ffee4b2", "Nr. 4711", "1st 2nd 3rd",
]  # fmt: skip


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_numbers_stay(text: str) -> None:
    for around in AROUND:
        assert redacted(around(text)) == around(text)


def test_one_value_has_one_token_in_the_whole_event() -> None:
    before = event(
        "Call me on +44 (0)20 7946 0958 or Alice@Example.com",
        "We call 020-7946-0958 (not 020 7946 0959) and write to alice@example.com.",
        "Office: 020 7946 0958",
        reference="+442079460958",
        conversation=(Turn("user", "I am alice@example.com"), Turn("assistant", "Hello")),
        labels={"customer": "alice@example.com", "app": "hr"},
    )
    named = Chunk("x", id="alice@example.com#4243557355858281972", source="13812345678.txt")
    before = replace(before, contexts=(*before.contexts, named))
    after = REDACTOR.redact(before)
    assert after.question == "Call me on [PHONE-1] or [EMAIL-1]"
    assert after.answer == "We call [PHONE-1] (not [PHONE-2]) and write to [EMAIL-1]."
    assert after.contexts == (
        Chunk("Office: [PHONE-1]"),
        Chunk("x", id="[EMAIL-1]#4243557355858281972", source="13812345678.txt"),
    )
    assert after.reference == "[PHONE-1]"
    assert after.conversation == (Turn("user", "I am [EMAIL-1]"), Turn("assistant", "Hello"))
    assert after.labels == {"customer": "[EMAIL-1]", "app": "hr"}


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("+86 138 1234 5678", "13812345678", True),
        ("+1 (415) 555-2671", "415.555.2671", True),
        ("+1 (415) 555-2671", "1-415-555-2671", True),
        ("010-12345678", "+86 10 1234 5678", True),
        ("4111 1111 1111 1111", "4111-1111-1111-1111", True),
        ("11010519491231002x", "11010519491231002X", True),
        ("GB29NWBK60161331926819", "GB29 NWBK 6016 1331 9268 19", True),
        ("+44 20 7946 0958", "+1 207 946 0958", False),
        ("13812345678", "13812345679", False),
        ("alice@example.com", "alice@example.org", False),
    ],
)
def test_two_spellings_of_one_value_share_a_token_and_two_values_do_not(first: str, second: str, same: bool) -> None:
    one, two = redacted(f"{first} | {second}").split(" | ")
    assert (one == two) == same
    assert one.startswith("[")
    assert two.startswith("[")


def test_tokens_of_an_earlier_redaction_keep_their_meaning() -> None:
    after = REDACTOR.redact(event("Was [PHONE-2] right, or 13812345678?", "[PHONE-2]", "13812345678"))
    assert after.question == "Was [PHONE-2] right, or [PHONE-3]?"
    assert after.contexts[0].text == "[PHONE-3]"


def test_an_event_without_personal_data_is_the_same_object() -> None:
    before = event("How many days?", "25 since 2026-11-29.", "Staff have 25 days.", labels={"kb_version": "2026-11"})
    assert REDACTOR.redact(before) is before


def test_ids_stay_unique_and_numbers_in_them_stay() -> None:
    one, two = (REDACTOR.redact(replace(event(), id=f"{name}@example.com-7")) for name in ("alice", "bob"))
    assert one.id != two.id
    assert one.id.startswith("redacted-")
    assert "alice" not in one.id
    assert REDACTOR.redact(one) is one
    plain = replace(event(), id="4111111111111111", trace_id="13812345678")
    assert REDACTOR.redact(plain) is plain


def test_kinds_can_be_left_out_and_all_of_it_turned_off() -> None:
    text = "alice@example.com 13812345678"
    assert redacted(text, Redactor(Redaction(kinds=("EMAIL",)))) == "[EMAIL-1] 13812345678"
    before = event(text)
    assert Redactor(Redaction(enabled=False)).redact(before) is before


def own(**patterns: str) -> Redactor:
    listed = [{"name": name, "pattern": pattern} for name, pattern in patterns.items()]
    return Redactor(Redaction.model_validate({"patterns": listed}))


def test_a_users_own_pattern() -> None:
    redactor = own(STAFF=r"\bEMP-\d{4,8}\b", CASE=r"(?<=工单)\d+")
    assert redacted("EMP-1234 and EMP-1235, then EMP-1234; 工单77", redactor) == (
        "[STAFF-1] and [STAFF-2], then [STAFF-1]; 工单[CASE-1]"
    )
    assert redactor.redact(replace(event(), id="EMP-1234-x")).id.startswith("redacted-")


def test_overlapping_values_leave_no_end_standing() -> None:
    assert redacted("4111111111111111", own(LAST=r"\d{4}(?!\d)")) == "[CARD-1]"
    assert redacted("no 7-4111111111111111", own(LONG=r"7-4\d{3}")) == "no [CARD-1]"


def test_a_users_pattern_does_not_eat_tokens() -> None:
    redactor = own(WORD=r"[A-Z]{4,}", NUMBER=r"\d+")
    once = redactor.redact(event("SECRET 12 alice@example.com"))
    assert once.question == "[WORD-1] [NUMBER-1] [EMAIL-1]"
    assert redactor.redact(once) is once


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "not a regular expression"),
        ("a*", "matches the empty text"),
        (r"(a+)+$", "took more than"),
        (r"(a|aa)+$", "took more than"),
        (r"(?:0|00)+$", "took more than"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused_with_the_settings(pattern: str, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        own(X=pattern)


def test_a_pattern_that_explodes_later_refuses_the_event_in_time() -> None:
    redactor = own(X=r"(?:q|qq)+z")
    started = time.monotonic()
    with pytest.raises(DecodeError) as caught:
        redactor.redact(event("q" * 4000, "", *["q" * 4000] * 50))
    assert caught.value.reason == "redaction_timeout"
    assert time.monotonic() - started < 2
    assert "qq" not in caught.value.detail, "the message is logged, so it quotes nothing"


HOSTILE = {
    "digits": "1", "at": "@", "ones": "1 ", "dots": "1.", "dashes": "1-2-", "addresses": "a@", "domains": "a.",
    "word": "a", "cards": "4111111111111111 ", "mobiles": "13812345678,", "ibans": "GB29 ", "plus": "+1 ",
    "zeros": "(0)", "mails": "a@b.com ", "groups": "4234 ", "ids": "A123456(", "tokens": "[PHONE-1] ",
    "names": "tel tel 1234567 ", "chain": "+31 6 12345678", "gaps": "1" + " " * 50, "wide": "１＠",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_with_the_length_and_no_faster(name: str) -> None:
    def seconds(characters: int) -> float:
        text = (HOSTILE[name] * characters)[:characters] + " alice@example.com"
        started = time.process_time()
        REDACTOR.redact(event(text))
        return time.process_time() - started

    quarter, whole = (min(seconds(size) for _ in range(3)) for size in (25_000, 100_000))
    assert whole < 10 * quarter + 0.1, "four times the text takes about four times as long; a square would take sixteen"


@pytest.mark.full
@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_hostile_text_takes_seconds_at_most(name: str) -> None:
    started = time.process_time()
    REDACTOR.redact(event((HOSTILE[name] * 1_000_000)[:1_000_000]))
    assert time.process_time() - started < 10


PIECES = st.one_of(
    st.sampled_from([value for _, values in PERSONAL for value in values]),
    st.sampled_from(ORDINARY),
    st.text(alphabet="0123456789 -.()+@ABXZabx/:,年号", max_size=25),
    st.text(max_size=10),
)


@given(st.lists(PIECES, max_size=6), st.sampled_from(["", " ", "，", "\n", "-"]))
def test_redacting_twice_is_redacting_once(pieces: list[str], separator: str) -> None:
    once = REDACTOR.redact(event(separator.join(pieces), "".join(pieces)))
    assert REDACTOR.redact(once) == once


@given(st.text(alphabet="0123456789", min_size=15, max_size=15), st.sampled_from(["", " ", "-"]))
def test_every_card_is_found_and_a_wrong_check_digit_is_not(digits: str, separator: str) -> None:
    body = "4" + digits[1:]
    checked = [body + check for check in "0123456789" if is_card(body + check)]
    assert len(checked) == 1
    groups = [checked[0][n : n + 4] for n in range(0, 16, 4)]
    assert redacted(f"card {separator.join(groups)} ok") == "card [CARD-1] ok"
    wrong = checked[0][:-1] + str((int(checked[0][-1]) + 1) % 10)
    assert "[CARD" not in redacted(f"card {wrong} ok")


@given(st.dates(), st.integers(0, 999), st.sampled_from(["110105", "310101", "440304", "650102"]))
def test_every_resident_id_is_found_and_one_changed_digit_is_not(born: Any, serial: int, area: str) -> None:
    if not 1900 <= born.year <= 2100:
        return
    body = f"{area}{born:%Y%m%d}{serial:03d}"
    checked = [body + c for c in "0123456789X" if is_chinese_resident_id(body + c)]
    assert len(checked) == 1
    assert redacted(f"身份证{checked[0]}，") == "身份证[ID-1]，"
    changed = checked[0][:16] + str((int(checked[0][16]) + 1) % 10) + checked[0][17]
    assert not is_chinese_resident_id(changed)


@given(st.integers(13_000_000_000, 19_999_999_999), st.sampled_from(["", "+86", "+86 ", "86-", "0086 "]))
def test_every_chinese_mobile_number_is_found(number: int, prefix: str) -> None:
    digits = str(number)
    for shape in (digits, f"{digits[:3]} {digits[3:7]} {digits[7:]}", f"{digits[:3]}-{digits[3:7]}-{digits[7:]}"):
        assert redacted(f"请拨{prefix}{shape}。") == "请拨[PHONE-1]。"


@given(st.integers(0, 10**7 - 1))
def test_ordinary_numbers_of_up_to_seven_digits_stay(number: int) -> None:
    assert redacted(f"it is {number}, and {number / 100:.2f} or {number:,}") == (
        f"it is {number}, and {number / 100:.2f} or {number:,}"
    )


@given(st.datetimes(datetime(1000, 1, 1)))
def test_times_and_dates_stay(when: datetime) -> None:
    for text in (when.isoformat(), when.isoformat(" "), f"{when:%d/%m/%Y %H:%M}", f"{when:%Y%m%d}", f"{when:%Y.%m.%d}"):
        assert redacted(f"at {text} sharp") == f"at {text} sharp"


def test_published_examples_of_check_digits() -> None:
    assert all(
        map(is_iban, ("BE68539007547034", "FR1420041010050500013M02606", "NO9386011117947", "SA0380000000608010167519"))
    )
    assert not is_iban("BE68539007547035")
    assert not is_iban("ZZ68539007547034")
    assert is_taiwan_id("A123456789")
    assert is_spanish_id("12345678Z")
    assert not is_card("0000000000000000")
