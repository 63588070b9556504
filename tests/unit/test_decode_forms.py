"""Forms are data: a user's own mapping file, its place before the shipped ones, its faults told clearly."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest

from consumer.decode import DecodeError, Decoder
from consumer.decoding.mapping import MappingError, load_forms
from consumer.settings import Decode
from tests.unit.decode_payloads import FLAT, P1, P2, A, Q

OURS = """
about = "the help desk's own log"

[recognise]
all = ["hd.ask", "hd.reply"]

[fields]
question = "hd.ask"
answer = "hd.reply"
contexts = "parse(hd.found)[?kind=='doc'].body.words"
id = ["hd.missing", "hd.number"]
labels = "hd.tags"

[labels]
app = "hd.desk"
"""
FOUND = [{"kind": "doc", "body": {"words": P1}}, {"kind": "ad"}, {"kind": "doc", "body": {"words": P2}}]
RECORD = {
    "hd": {"ask": Q, "reply": A, "number": 7, "desk": "north", "tags": {"model": "m"}, "found": json.dumps(FOUND)}
}


def decoder(directory: Path, text: str = OURS, form: str = "") -> Decoder:
    (directory / "helpdesk.toml").write_text(text)
    return Decoder(Decode(forms_dir=directory, form=form))


def test_a_users_own_form(tmp_path: Path) -> None:
    decoded = decoder(tmp_path).decode(orjson.dumps(RECORD), fallback_id="f", broker_time=None)
    event = decoded.event
    assert decoded.form == "helpdesk"
    assert (event.question, event.answer, event.id) == (Q, A, "7")
    assert [chunk.text for chunk in event.contexts] == [P1, P2]
    assert event.labels == {"app": "north", "model": "m"}


def test_a_step_into_a_text_opens_it(tmp_path: Path) -> None:
    opened = OURS.replace("parse(hd.found)[?kind=='doc'].body.words", "hd.found[].body.words")
    decoded = decoder(tmp_path, opened).decode(orjson.dumps(RECORD), fallback_id="f", broker_time=None)
    assert [chunk.text for chunk in decoded.event.contexts] == [P1, P2]


def test_a_users_form_goes_first_even_on_the_native_form(tmp_path: Path) -> None:
    text = '[recognise]\nall = ["contexts"]\n[fields]\nquestion = "question"\ncontexts = "contexts"\nanswer = "other"'
    record = FLAT | {"other": "from the other field", "id": "1", "timestamp": "2026-01-01T00:00:00Z"}
    decoded = decoder(tmp_path, text).decode(orjson.dumps(record), fallback_id="f", broker_time=None)
    assert (decoded.form, decoded.event.answer) == ("helpdesk", "from the other field")


def test_a_pinned_form_is_the_only_one(tmp_path: Path) -> None:
    pinned = decoder(tmp_path, form="helpdesk")
    assert pinned.decode(orjson.dumps(RECORD), fallback_id="f", broker_time=None).form == "helpdesk"
    with pytest.raises(DecodeError) as caught:
        pinned.decode(orjson.dumps(FLAT), fallback_id="f", broker_time=None)
    assert caught.value.reason in ("unrecognised", "missing:contexts")


def test_a_file_of_a_shipped_name_replaces_it(tmp_path: Path) -> None:
    (tmp_path / "dify.toml").write_text(OURS)
    assert len([form for form in load_forms(tmp_path) if form.name == "dify"]) == 1


def test_every_shipped_form_says_what_it_is() -> None:
    forms = load_forms(None)
    assert len(forms) >= 25
    assert all(form.about for form in forms)
    assert [form.order for form in forms] == sorted(form.order for form in forms)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("about = ", "not TOML"),
        ("[fields]\nanswer = 'a'", "fields.contexts is missing"),
        ("[fields]\nanswer = 'a'\ncontexts = 'b['", "fields.contexts: 'b['"),
        ("[fields]\nanswer = 'a'\ncontexts = 3", "must be a JMESPath expression"),
        ("[fields]\nanswer = 'a'\ncontexts = 'b'\nquestoin = 'c'", "fields.questoin"),
        ("order = 'x'\n[fields]\nanswer = 'a'\ncontexts = 'b'", "order must be"),
        ("fields = 3", "must be a table"),
        ("trace = 1\n[fields]\nanswer = 'a'\ncontexts = 'b'", "trace must be true or false"),
    ],
)
def test_faults_of_a_mapping_file_are_told(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(MappingError) as caught:
        decoder(tmp_path, text)
    assert "helpdesk.toml" in str(caught.value)
    assert message in str(caught.value)


def test_an_unknown_form_and_an_absent_directory(tmp_path: Path) -> None:
    with pytest.raises(MappingError, match="there is no form 'nothing'"):
        Decoder(Decode(form="nothing"))
    with pytest.raises(MappingError, match="not a directory"):
        Decoder(Decode(forms_dir=tmp_path / "absent"))
