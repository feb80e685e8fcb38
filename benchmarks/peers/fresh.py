"""The floor of judging: a new process that imports torch and runs reference and kernel once, on one set of inputs.

`python -m benchmarks.peers.fresh LIBRARY ROWS COLUMNS`: a compiled kernel of gelu; exit code 1 where they differ.
"""

from __future__ import annotations

import ctypes
import sys


class Tensor(ctypes.Structure):
    """`sb_tensor` of device/languages/sagebook_kernel.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("ndim", ctypes.c_int64),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("dtype", ctypes.c_int32),
    )


def main() -> int:
    """Run both once and compare them."""
    import torch  # noqa: PLC0415 - a part of what is measured

    library, rows, columns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    x = torch.randn(rows, columns)
    y = torch.empty_like(x)
    shape, strides = (ctypes.c_int64 * 2)(rows, columns), (ctypes.c_int64 * 2)(columns, 1)
    before, after = (Tensor(t.data_ptr(), 2, shape, strides, 0) for t in (x, y))
    run = ctypes.CDLL(library).sagebook_kernel
    run.argtypes = [
        *(ctypes.POINTER(Tensor), ctypes.c_int64, ctypes.POINTER(Tensor), ctypes.c_int64),
        *(ctypes.POINTER(ctypes.c_double), ctypes.c_int64),
    ]
    code = run(ctypes.byref(before), 1, ctypes.byref(after), 1, None, 0)
    return int(code != 0 or not torch.allclose(torch.nn.functional.gelu(x), y, atol=1e-4, rtol=1e-4))


if __name__ == "__main__":
    sys.exit(main())
