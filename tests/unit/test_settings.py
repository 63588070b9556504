from pathlib import Path

import pytest

from consumer.settings_source import SettingsError, in_force, load


def test_environment_wins_over_file_wins_over_default(tmp_path: Path) -> None:
    file = tmp_path / "g.toml"
    file.write_text('[sampling]\nrate = 0.5\nsalt = "a"\n')
    loaded = load(file, {"GROUNDWATCH__SAMPLING__RATE": "0.25"})
    assert (loaded.settings.sampling.rate, loaded.settings.sampling.salt) == (0.25, "a")
    origin = {key: where for key, _, where in in_force(loaded)}
    assert origin["sampling.rate"] == "GROUNDWATCH__SAMPLING__RATE"
    assert origin["sampling.salt"] == str(file)
    assert origin["sampling.id_header"] == "default"


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"GROUNDWATCH__SAMPLNG__RATE": "1"}, "did you mean 'sampling'"),
        ({"GROUNDWATCH__SAMPLING__RAET": "1"}, "did you mean 'sampling.rate'"),
        ({"GROUNDWATCH__SAMPLING__RATE": "0"}, "greater than 0"),
        ({"GROUNDWATCH__KAFKA__SASL_USERNAME": "u"}, "security_protocol is PLAINTEXT"),
        ({"GROUNDWATCH__SEGMENTS__ALLOW": '{"app": ["a","b","c","d","e","f","g","h"], "lang": ["a","b","c","d","e"]}'},
         "at most 50"),
    ],
)  # fmt: skip
def test_a_fault_names_the_key_and_what_is_expected(environ: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load(None, environ)


def test_secrets_are_never_shown() -> None:
    loaded = load(None, {"GROUNDWATCH__EMBEDDING__ENDPOINT_KEY": "hunter2"})
    assert "hunter2" not in repr(list(in_force(loaded))) + repr(loaded)


def test_missing_file_and_broken_toml_are_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no such file"):
        load(tmp_path / "absent.toml", {})
    (tmp_path / "broken.toml").write_text("[sampling\n")
    with pytest.raises(SettingsError, match=r"broken\.toml"):
        load(tmp_path / "broken.toml", {})
