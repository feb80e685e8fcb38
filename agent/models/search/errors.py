"""What this model can refuse."""

from __future__ import annotations

from agent.errors import ModelError


class NoRecipe(ModelError):  # noqa: N818  (named for what is missing)
    """The operator cannot be composed from what this model knows. `operator` and `missing` say which and what."""

    def __init__(self, operator: str, missing: str) -> None:
        self.operator = operator
        self.missing = missing
        super().__init__(
            f"the search model has no recipe for operator {operator!r}: {missing}. "
            "Use a language model for it (`--model chat`), or express its reference in the functions listed in "
            "agent/models/search/pointwise.py and rows.py."
        )
