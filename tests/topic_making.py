"""Topics made by hand, as a stranger's would be."""

from __future__ import annotations

import time

from confluent_kafka.admin import AdminClient, NewTopic


def make_topic(bootstrap: str, name: str, partitions: int, **config: str) -> None:
    """Create a topic and return once the broker lists it. `config` takes `cleanup_policy="compact"` and the like."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    properties = {key.replace("_", "."): value for key, value in config.items()}
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=properties)
    admin.create_topics([topic])[name].result()
    deadline = time.monotonic() + 10
    while name not in admin.list_topics(timeout=5).topics:
        assert time.monotonic() < deadline, f"{name} was created and never listed"
        time.sleep(0.05)
