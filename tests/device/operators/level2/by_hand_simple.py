"""Activations and lists of tensors in numpy, written in another way than their references."""

from __future__ import annotations

import math

import numpy as np

from tests.device.operators.level2.kit import sigmoid

ROOT = math.sqrt(2 / math.pi)


def tanh_gelu(x):
    return 0.5 * x * (1 + np.tanh(ROOT * (x + 0.044715 * x**3)))


def slope(function, x, step=1e-5):
    """A derivative by central differences of the fourth order."""
    return (8 * (function(x + step) - function(x - step)) - function(x + 2 * step) + function(x - 2 * step)) / (
        12 * step
    )


def fast(x):
    return x * sigmoid(1.702 * x)


def per_tensor(count, scalars, function):
    """A list operator from a function of one tensor of each list, the scalar of its place and the attributes."""

    def run(*arrays, **attributes):
        lists = arrays[:-1] if scalars else arrays
        length = len(lists) // count
        numbers = [(arrays[-1][i],) if scalars else () for i in range(length)]
        return tuple(function(*lists[i::length], *numbers[i], **attributes) for i in range(length))

    return run


def integral_of_bell(x):
    return np.vectorize(math.erf)(x)


SIMPLE = {
    "FastGelu": lambda x: (fast(x),),
    "FastGeluGrad": lambda dy, x: (dy * slope(fast, x),),
    "Gelu": lambda x: (tanh_gelu(x),),
    "GeluGrad": lambda dy, x: (dy * slope(tanh_gelu, x),),
    "Swish": lambda x, scale: (x * sigmoid(scale * x),),
    "ForeachAddList": per_tensor(2, scalars=False, function=lambda x, y, alpha: np.add(x, alpha * y)),
    "ForeachAddScalarList": per_tensor(1, scalars=True, function=lambda x, s: (x.T + s).T),
    "ForeachAddcdivScalar": per_tensor(3, scalars=False, function=lambda x, a, b, value: x + np.divide(value * a, b)),
    "ForeachAddcmulScalarList": per_tensor(
        3, scalars=True, function=lambda x, a, b, s: np.add(np.multiply(a, b) * s, x)
    ),
    "ForeachDivList": per_tensor(2, scalars=False, function=lambda x, y: x * y**-1.0),
    "ForeachErf": per_tensor(1, scalars=False, function=integral_of_bell),
    "ForeachExpm1": per_tensor(1, scalars=False, function=lambda x: 2 * np.exp(x / 2) * np.sinh(x / 2)),
    "ForeachLerpScalar": per_tensor(2, scalars=False, function=lambda x, y, weight: (1 - weight) * x + weight * y),
    "ForeachLog1p": per_tensor(1, scalars=False, function=lambda x: 2 * np.arctanh(x / (2 + x))),
    "ForeachMaximumList": per_tensor(2, scalars=False, function=np.maximum),
    "ForeachMulScalar": per_tensor(1, scalars=False, function=lambda x, scalar: x * type(x.flat[0])(scalar)),
    "ForeachPowScalarAndTensor": per_tensor(1, scalars=False, function=lambda x, scalar: np.power(scalar, x)),
    "ForeachSigmoid": per_tensor(1, scalars=False, function=sigmoid),
}
