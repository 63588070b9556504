"""The section `[judge]`: what it refuses, and that it keeps its secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from consumer.judge_settings import Judge
from consumer.judging.building import api_key
from consumer.settings_source import SettingsError, in_force, load
from metrics.model_files import ModelError

LLM = {
    "GROUNDWATCH__JUDGE__KIND": "llm",
    "GROUNDWATCH__JUDGE__URL": "http://j:8000/v1/",
    "GROUNDWATCH__JUDGE__MODEL": "m",
}


def test_an_llm_needs_an_endpoint_and_a_model() -> None:
    assert load(None, LLM).settings.judge.url == "http://j:8000/v1"
    with pytest.raises(SettingsError, match=r"needs judge.url .* and judge.model"):
        load(None, {"GROUNDWATCH__JUDGE__KIND": "llm"})
    whole = LLM | {"GROUNDWATCH__JUDGE__URL": "https://j/v1/chat/completions"}
    assert load(None, whole).settings.judge.url == "https://j/v1"


@pytest.mark.parametrize("url", ["j:8000", "ftp://j/v1", "http://", "http://user:secret@:80x/v1"])
def test_a_url_that_is_none_is_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(SettingsError) as error:
        load(None, LLM | {"GROUNDWATCH__JUDGE__URL": url})
    assert "judge.url: must read http://HOST:PORT/v1" in str(error.value)
    assert "secret" not in str(error.value)


def test_the_key_is_read_and_never_shown(tmp_path: Path) -> None:
    keyed = load(None, LLM | {"GROUNDWATCH__JUDGE__API_KEY": "sk-1"})
    shown = {key: value for key, value, _ in in_force(keyed)}
    assert shown["judge.api_key"] == "***"
    file = tmp_path / "key"
    file.write_text("sk-2\n")
    assert api_key(Judge(api_key_file=file)) == "sk-2"
    file.write_text("sk\n-2")
    with pytest.raises(ModelError, match="no HTTP header can carry") as error:
        api_key(Judge(api_key_file=file))
    assert "sk" not in str(error.value)
    with pytest.raises(ModelError, match=r"judge.api_key_file: .*No such file"):
        api_key(Judge(api_key_file=tmp_path / "none"))
    with pytest.raises(SettingsError, match="both set"):
        load(None, LLM | {"GROUNDWATCH__JUDGE__API_KEY": "sk-1", "GROUNDWATCH__JUDGE__API_KEY_FILE": str(file)})


def test_a_judge_may_not_hold_so_much_that_the_topic_pauses() -> None:
    with pytest.raises(SettingsError, match="more than half of"):
        load(None, LLM | {"GROUNDWATCH__JUDGE__WAITING": "2000"})
    assert load(None, {"GROUNDWATCH__JUDGE__WAITING": "2000"}).settings.judge.waiting == 2000


def test_what_verdicts_are_counted_by_cannot_be_overridden() -> None:
    with pytest.raises(SettingsError, match="messages, user cannot be set"):
        load(None, LLM | {"GROUNDWATCH__JUDGE__EXTRA": '{"user": "me", "messages": [], "top_k": 1}'})
