"""What operators over several element types share: computing half formats in float32, naming cases by their type.

Torch is reached through the tensors that come in, so that nothing here imports it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from device.operators.base import Case, TensorSpec

if TYPE_CHECKING:
    from torch import Tensor

SHORT = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "int8": "i8",
    "uint8": "u8",
    "int32": "i32",
    "int64": "i64",
    "bool": "bool",
    "complex64": "c64",
}
"""Short names of element types, for the names of cases."""


def wide(x: Tensor) -> Tensor:
    """Return x in float32 where it is a half format, else as it is: no step between the first and the last rounds."""
    return x.float() if x.is_floating_point() and x.element_size() < 4 else x


def wide_as(x: Tensor, like: Tensor) -> Tensor:
    """Return whole numbers or bool as the floating type that `like` computes in: float32, or float64 for float64."""
    return x.to(wide(like).dtype)


def specs(dtype: str, *shapes: tuple[int, ...], **settings: Any) -> tuple[TensorSpec, ...]:
    """Describe dense tensors of one dtype."""
    return tuple(TensorSpec(shape, dtype, **settings) for shape in shapes)


def full(
    shapes: Sequence[tuple[str, tuple[TensorSpec, ...]]], attributes: Mapping[str, float] | None = None
) -> tuple[Case, ...]:
    """Name full-sized cases."""
    return tuple(Case(f"full-{name}", inputs, attributes or {}) for name, inputs in shapes)
