"""The child process of `harness`: calls of a kernel. A request comes pickled on standard input, the outputs go back."""

from __future__ import annotations

import ctypes
import pickle
import sys

import numpy as np

GUARD = 64
DTYPES = {"float32": 0, "int64": 3}


class Tensor(ctypes.Structure):
    """`sb_tensor`."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("ndim", ctypes.c_int64),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("dtype", ctypes.c_int32),
    )


def tensor(array: np.ndarray, keep: list) -> Tensor:
    """Describe an array; strides count elements."""
    numbers = ctypes.c_int64 * max(1, array.ndim)
    shape, strides = numbers(*array.shape), numbers(*(step // array.itemsize for step in array.strides))
    keep += [shape, strides, array]
    return Tensor(array.ctypes.data, array.ndim, shape, strides, DTYPES[str(array.dtype)])


def call(kernel: object, inputs: list, shape: tuple, dtype: str, attributes: list) -> np.ndarray:
    """Call the kernel once, on an output between guards."""
    keep: list = []
    size = int(np.prod(shape, dtype=np.int64))
    memory = np.full(size + 2 * GUARD, -777, dtype=dtype)
    out = memory[GUARD : GUARD + size].reshape(shape)
    given = (Tensor * len(inputs))(*(tensor(array, keep) for array in inputs))
    wanted = (Tensor * 1)(tensor(out, keep))
    numbers = (ctypes.c_double * max(1, len(attributes)))(*attributes)
    code = kernel(
        given, ctypes.c_int64(len(inputs)), wanted, ctypes.c_int64(1), numbers, ctypes.c_int64(len(attributes))
    )
    if code != 0:
        raise SystemExit(f"the kernel returned {code}")
    if (memory[:GUARD] != -777).any() or (memory[GUARD + size :] != -777).any():
        raise SystemExit("the kernel wrote outside its output")
    return out.copy()


def main() -> None:
    """Run the calls of one request."""
    library, calls = pickle.loads(sys.stdin.buffer.read())  # noqa: S301  (our own parent's)
    kernel = ctypes.CDLL(library).sagebook_kernel
    sys.stdout.buffer.write(pickle.dumps([call(kernel, *one) for one in calls]))


if __name__ == "__main__":
    main()
