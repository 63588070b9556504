"""Makes numbers: pure scoring, judges, rolling windows, drift, exposition. Knows no Kafka and no Redis."""
