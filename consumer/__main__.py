"""`python -m consumer` is the `groundwatch` command."""

from consumer.cli import main

main()
