"""The model that composes kernels from a space of choices; see `model.SearchModel`."""

from __future__ import annotations

from agent.models.search.model import SearchModel

__all__ = ["SearchModel"]
