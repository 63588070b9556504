"""The Faust app of the monitor."""

from __future__ import annotations

import logging
from typing import Any

import faust

from consumer import kafka_config
from consumer.bundles import BundleScheduler
from consumer.settings import Settings

SESSION_SECONDS = 6.0
"""How soon a standby takes over from a monitor that was killed; brokers allow no less by default."""


def build_app(settings: Settings, scratch: str) -> Any:
    """A Faust app that makes no topic, serves no page and keeps no table; `scratch` is the folder it insists on."""
    broker, credentials = kafka_config.faust_broker(settings.kafka)
    for name in ("faust", "mode", "aiokafka", "kafka"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return faust.App(
        settings.monitor.group,
        broker=broker,
        broker_credentials=credentials,
        store="memory://",
        datadir=scratch,
        autodiscover=False,
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        key_serializer="raw",
        value_serializer="raw",
        consumer_auto_offset_reset="earliest",
        broker_client_id="groundwatch-monitor",
        broker_session_timeout=SESSION_SECONDS,
        broker_heartbeat_interval=SESSION_SECONDS / 4,
        broker_rebalance_timeout=20.0,
        broker_request_timeout=30.0,
        # Reading back may take its deadline before the first record is taken; our own watch judges progress.
        broker_commit_livelock_soft_timeout=1e6,
        stream_processing_timeout=1e6,
        ConsumerScheduler=BundleScheduler,
        # In bundles. Prefetched records cost memory twice: here and in the client.
        stream_buffer_maxsize=8,
        consumer_max_fetch_size=512 * 1024,
    )
