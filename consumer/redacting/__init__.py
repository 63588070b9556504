"""The parts of `consumer.redaction`: what is looked for, and how a number proves itself."""
