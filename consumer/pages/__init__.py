"""The on-call pages, served by the monitor (docs/pages.md)."""
