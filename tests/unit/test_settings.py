from pathlib import Path

import pytest
from pydantic import ValidationError

from consumer import kafka_config
from consumer.settings import Settings
from consumer.settings_source import SettingsError, in_force, load
from metrics.llm.names import METRICS as LLM_METRICS
from metrics.ranges import SIMILARITIES, range_of
from metrics.similarity import build_metrics


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
        ({"GROUNDWATCH__TOPICS__EVENTS": '["qa.scores"]'}, r"'qa.scores' is named more than once \(events, scores\)"),
        ({"GROUNDWATCH__TOPICS__EVENTS": '["a", "a"]'}, "'a' is named more than once"),
        ({"GROUNDWATCH__TOPICS__LABELS": "qa.redrive"}, r"more than once \(redrive, labels\)"),
        ({"GROUNDWATCH__TOPICS__EVENTS": "[]"}, "events is empty"),
        ({"GROUNDWATCH__TOPICS__SCORES": "qa scores"}, "'qa scores' is no topic name"),
        ({"GROUNDWATCH__TOPICS__SCORES": ""}, "'' is no topic name"),
        ({"GROUNDWATCH__TOPICS__EVENTS": '["' + 250 * "a" + '"]'}, "is no topic name"),
        ({"GROUNDWATCH__TOPICS__EVENTS": "7"}, "should be a list"),
        ({"GROUNDWATCH__SCORING__METRICS": "faithfulness"}, "should be a list"),
        ({"GROUNDWATCH__KAFKA__CONSUMER__ENABLE_AUTO_COMMIT": "true"}, "enable.auto.commit cannot be set"),
        ({"GROUNDWATCH__KAFKA__CONSUMER__GROUP_ID": "mine"}, "group.id cannot be set"),
        ({"GROUNDWATCH__KAFKA__PRODUCER__ACKS": "1"}, "acks cannot be set"),
        ({"GROUNDWATCH__KAFKA__PRODUCER__ENABLE_IDEMPOTENCE": "false"}, "enable.idempotence cannot be set"),
        ({"GROUNDWATCH__REDIS__CACHE_URL": "redis:/foo"}, "redis.cache_url: must read redis://HOST:PORT/DB.*no host"),
        ({"GROUNDWATCH__REDIS__CASES_URL": "localhost:6379"}, "redis.cases_url: must read redis://HOST:PORT/DB"),
        ({"GROUNDWATCH__REDIS__CACHE_URL": "redis://h:port"}, "host or port cannot be read"),
        ({"GROUNDWATCH__REDIS__CACHE_URL": "redis://h:1/db"}, "the database is a number"),
        ({"GROUNDWATCH__REDIS__CACHE_URL": "http://h"}, "must read"),
        ({"GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": "BOOT"}, "kafka.bootstrap_servers: 'BOOT' is not HOST:PORT"),
        ({"GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": "a:9092,b"}, "'b' is not HOST:PORT"),
        ({"GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": "a:9092,"}, "'' is not HOST:PORT"),
        ({"GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": "a:99999"}, "'a:99999' is not HOST:PORT"),
        ({"GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": "SSL://a:9092"}, "is not HOST:PORT"),
        ({"GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": "::1:9092"}, "is not HOST:PORT"),
        ({"GROUNDWATCH__THRESHOLDS__DEFAULT": '{"faithfullness": 0.9}'},
         "thresholds.default: no metric is called 'faithfullness'; did you mean 'faithfulness'"),
        ({"GROUNDWATCH__THRESHOLDS__DEFAULT": '{"zzz": 0.9}'}, "no metric is called 'zzz'; known: faithfulness, "),
        ({"GROUNDWATCH__THRESHOLDS__DEFAULT": '{"faithfulness": 1.5}'},
         r"faithfulness lies in \[0, 1\], so its threshold cannot be 1.5"),
        ({"GROUNDWATCH__THRESHOLDS__DEFAULT": '{"faithfulness": 0.9, "topic_similarity": 7}'},
         r"topic_similarity lies in \[-1, 1\], so its threshold cannot be 7"),
        ({"GROUNDWATCH__THRESHOLDS__DEFAULT": '{"topic_similarity": "nan"}'}, "finite number"),
        ({"GROUNDWATCH__THRESHOLDS__SEGMENTS": '{"lang=zh": {"topic_similarty": 0.1}}'},
         "thresholds.segments: 'lang=zh': no metric is called 'topic_similarty'; did you mean 'topic_similarity'"),
        ({"GROUNDWATCH__THRESHOLDS__SEGMENTS": '{"lang=zh": {"faithfulness": -0.1}}'}, "'lang=zh': faithfulness lies"),
        ({"GROUNDWATCH__THRESHOLDS__SEGMENTS": '{"lnag=zh": {"faithfulness": 0.1}}'},
         "thresholds.segments: 'lnag=zh': no dimension 'lnag'"),
        ({"GROUNDWATCH__THRESHOLDS__SEGMENTS": '{"app=shop": {"faithfulness": 0.1}}'}, "threshold would never apply"),
        ({"GROUNDWATCH__SCORING__METRICS": '["faithfull"]'}, "scoring.metrics: no metric is called 'faithfull'"),
        ({"GROUNDWATCH__SCORING__METRICS": '["faithfulness", "faithfulness"]'}, "named twice"),
    ],
)  # fmt: skip
def test_a_fault_names_the_key_and_what_is_expected(environ: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load(None, environ)


@pytest.mark.parametrize("servers", ["a:1", "kafka-1.example.org:9092, kafka_2:9093", "[::1]:9092", "10.0.0.1:65535"])
def test_servers_that_can_be(servers: str) -> None:
    loaded = load(None, {"GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": servers})
    assert loaded.settings.kafka.bootstrap_servers == servers


def test_every_metric_that_can_be_scored_may_have_a_threshold_anywhere_in_its_range() -> None:
    similarities = build_metrics(SIMILARITIES, "best")
    assert {m.name: m.bounds for m in similarities} == dict.fromkeys(SIMILARITIES, (-1.0, 1.0))
    with pytest.raises(ValueError, match=f"known: {', '.join(SIMILARITIES)}$"):
        build_metrics(["none such"], "best")
    for name in (*LLM_METRICS, *SIMILARITIES):
        for edge in (range_of(name).low, range_of(name).high):
            default = load(
                None, {"GROUNDWATCH__THRESHOLDS__DEFAULT": f'{{"{name}": {edge}}}'}
            ).settings.thresholds.default
            assert default == {name: edge}


def test_secrets_are_never_shown() -> None:
    loaded = load(None, {"GROUNDWATCH__EMBEDDING__ENDPOINT_KEY": "hunter2"})
    assert "hunter2" not in repr(list(in_force(loaded))) + repr(loaded)


def test_missing_file_and_broken_toml_are_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no such file"):
        load(tmp_path / "absent.toml", {})
    (tmp_path / "broken.toml").write_text("[sampling\n")
    with pytest.raises(SettingsError, match=r"broken\.toml"):
        load(tmp_path / "broken.toml", {})


def test_one_topic_needs_no_list() -> None:
    assert load(None, {"GROUNDWATCH__TOPICS__EVENTS": "mine"}).settings.topics.events == ("mine",)


@pytest.mark.parametrize(
    "url",
    ["", "redis://h", "redis://:p@h:6379/2", "rediss://u:p@h:6379", "unix:///run/redis.sock", "redis://[::1]:1/0"],
)
def test_urls_of_a_redis_are_taken(url: str) -> None:
    assert load(None, {"GROUNDWATCH__REDIS__CACHE_URL": url}).settings.redis.cache_url == url


def test_a_password_in_a_bad_url_is_not_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        load(None, {"GROUNDWATCH__REDIS__CACHE_URL": "redis//:hunter2@h:x"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("role", ["consumer", "producer"])
def test_a_property_that_the_client_does_not_know_needs_no_broker_to_be_told(role: str) -> None:
    kafka = load(None, {}).settings.kafka
    kafka_config.check(kafka)
    with pytest.raises(kafka_config.KafkaConfigError, match=rf'kafka.{role}: .*"fetch.min.byte"'):
        kafka_config.check(kafka.model_copy(update={role: {"fetch.min.byte": 1}}))


def test_segment_keys_that_would_be_one_label_are_refused() -> None:
    with pytest.raises(ValidationError, match="'data-centre' and 'data_centre' would be one label"):
        Settings.model_validate({"segments": {"allow": {"data-centre": ["a"], "data_centre": ["b"]}}})


def test_no_number_is_endless() -> None:
    with pytest.raises(ValidationError, match="finite"):
        Settings.model_validate({"scorer": {"max_delay_seconds": float("inf")}})
