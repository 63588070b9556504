"""Moves events: Kafka in and out, sampling, redaction, cache, worker, monitor, commands."""
