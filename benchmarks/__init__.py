"""Measurements of what users wait for. `scripts/bench` runs them; nothing here is installed."""
