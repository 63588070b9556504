"""The Faust app that the monitor runs on: what it must never do."""

from __future__ import annotations

from pathlib import Path

import pytest

from consumer.faust_app import build_app
from consumer.settings import Settings


def test_it_makes_no_topic_serves_no_page_and_keeps_no_table(tmp_path: Path) -> None:
    conf = build_app(Settings.model_validate({"monitor": {"group": "g"}}), str(tmp_path)).conf
    assert conf.topic_allow_declare is False
    assert conf.topic_disable_leader is True
    assert conf.web_enabled is False
    assert str(conf.store) == "memory:"
    assert conf.id == "g"
    # A killed monitor is replaced within seconds, and the brokers' lower limit for that is 6 s.
    assert 6.0 <= conf.broker_session_timeout <= 10.0


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_one_kafka_section_gives_it_its_credentials(tmp_path: Path, mechanism: str) -> None:
    secret = tmp_path / "password"
    secret.write_text("s3cret\n")
    settings = Settings.model_validate(
        {
            "kafka": {
                "bootstrap_servers": "a:9093, b:9093",
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": mechanism,
                "sasl_username": "monitor",
                "sasl_password_file": secret,
            }
        }
    )
    conf = build_app(settings, str(tmp_path)).conf
    assert [(url.host, url.port) for url in conf.broker] == [("a", 9093), ("b", 9093)]
    credentials = conf.broker_credentials
    assert (credentials.username, credentials.password) == ("monitor", "s3cret")
    assert credentials.mechanism.value == mechanism
    assert credentials.protocol.value == "SASL_SSL"
