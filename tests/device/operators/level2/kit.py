"""Draws the inputs of a case and runs a reference on them in float64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from device.operators import Case, Operator
from device.operators.check import draw

SMALL = 50_000


def cases_of(operator: Operator, seed: int = 5) -> Iterator[Case]:
    """All visible and hidden cases that are small enough for plain loops."""
    for case in (*operator.cases, *operator.hidden_cases(np.random.default_rng(seed))):
        if sum(spec.elements for spec in case.inputs) <= SMALL:
            yield case


def drawn(case: Case, rng: np.random.Generator) -> list[np.ndarray]:
    """Inputs of a case: float64 for floating types, else as they are."""
    arrays = [np.ascontiguousarray(draw(spec, rng)) for spec in case.inputs]
    return [
        array.astype(np.float64) if array.dtype.kind == "f" else array.reshape(spec.shape)
        for array, spec in zip(arrays, case.inputs, strict=True)
    ]


def run(operator: Operator, *arrays, **attributes: float) -> list[np.ndarray]:
    """Outputs of the reference; lists of numbers are taken as float64."""
    tensors = [
        torch.from_numpy(np.array(a) if isinstance(a, np.ndarray) else np.array(a, dtype=np.float64)) for a in arrays
    ]
    return [out.numpy() for out in operator.reference(*tensors, **attributes)]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 + 0.5 * np.tanh(x / 2)
