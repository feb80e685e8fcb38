"""Loads one compiled kernel and runs it on prepared cases; a process of its own, so that a crash is only its own.

Arguments: the shared object and a folder with `cases.json` and the arrays it names; results go into the same folder.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

import numpy as np

CODES = {"float32": 0, "int64": 3}
POISON = {"float32": np.float32("nan"), "int64": np.int64(-(2**62))}
GUARD = 64  # elements before and after an output that must stay as they were


class SbTensor(ctypes.Structure):
    """The C struct `sb_tensor` of the kernel header, field by field."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("ndim", ctypes.c_int64),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("dtype", ctypes.c_int32),
    ]


def tensor(address, shape, strides, dtype):
    numbers = ctypes.c_int64 * max(1, len(shape))
    return SbTensor(address, len(shape), numbers(*shape), numbers(*strides), CODES[dtype])


def main(library: str, folder: Path) -> None:
    kernel = ctypes.CDLL(library).sagebook_kernel
    for index, case in enumerate(json.loads((folder / "cases.json").read_text())):
        storages = [np.load(folder / f"{index}-in{i}.npy") for i in range(len(case["inputs"]))]
        before = [storage.tobytes() for storage in storages]
        inputs = [
            tensor(storage.ctypes.data, spec["shape"], spec["strides"], spec["dtype"])
            for storage, spec in zip(storages, case["inputs"], strict=True)
        ]
        results = [np.full(spec["storage"] + 2 * GUARD, POISON[spec["dtype"]]) for spec in case["outputs"]]
        outputs = [
            tensor(array.ctypes.data + GUARD * array.itemsize, spec["shape"], spec["strides"], spec["dtype"])
            for array, spec in zip(results, case["outputs"], strict=True)
        ]
        code = kernel(
            (SbTensor * len(inputs))(*inputs),
            ctypes.c_int64(len(inputs)),
            (SbTensor * len(outputs))(*outputs),
            ctypes.c_int64(len(outputs)),
            (ctypes.c_double * max(1, len(case["attributes"])))(*case["attributes"]),
            ctypes.c_int64(len(case["attributes"])),
        )
        assert code == 0, f"{case['name']}: the kernel returned {code}"
        assert [storage.tobytes() for storage in storages] == before, f"{case['name']}: an input was changed"
        for i, (array, spec) in enumerate(zip(results, case["outputs"], strict=True)):
            guards = np.concatenate([array[:GUARD], array[-GUARD:]])
            assert guards.tobytes() == np.full_like(guards, POISON[spec["dtype"]]).tobytes(), (
                f"{case['name']}: wrote outside"
            )
            np.save(folder / f"{index}-out{i}.npy", array[GUARD:-GUARD])


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
