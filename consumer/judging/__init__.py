"""Calling a judge that is somewhere else: HTTP, retries, budget, cache, and the pool that keeps it off the hot path."""
