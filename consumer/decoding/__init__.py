"""The parts of `consumer.decode`: bytes, envelopes, forms, shapes."""
