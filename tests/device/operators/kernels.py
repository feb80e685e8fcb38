"""Compiles expert kernels and runs them through their C entry point, in a child process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import device.languages
from device.operators import Case, Operator, TensorSpec

HEADERS = Path(device.languages.__file__).parent
FLAGS = ("-std=c++17", "-O3", "-fopenmp", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", f"-I{HEADERS}")


@dataclass(frozen=True)
class Prepared:
    """A case with input values: each array has the shape of its spec, whose strides it gets in the kernel's memory."""

    case: Case
    arrays: tuple[np.ndarray, ...]
    outputs: tuple[TensorSpec, ...]


def compile_kernel(operator: Operator, folder: Path, machine: str = "native") -> Path:
    source = folder / f"{operator.name}-{machine}.cpp"
    source.write_text(operator.expert)
    library = source.with_suffix(".so")
    done = subprocess.run(
        ["g++", *FLAGS, f"-march={machine}", str(source), "-o", str(library)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return library


def laid_out(spec: TensorSpec, array: np.ndarray) -> np.ndarray:
    storage = np.full(spec.storage, np.nan if array.dtype.kind == "f" else 0, dtype=array.dtype)
    view = np.lib.stride_tricks.as_strided(storage, spec.shape, tuple(s * array.itemsize for s in spec.layout))
    view[...] = array
    return storage


def seen(spec: TensorSpec, storage: np.ndarray) -> np.ndarray:
    return np.lib.stride_tricks.as_strided(storage, spec.shape, tuple(s * storage.itemsize for s in spec.layout)).copy()


def _described(spec: TensorSpec) -> dict[str, object]:
    return {"shape": spec.shape, "strides": spec.layout, "dtype": spec.dtype, "storage": spec.storage}


def run_kernel(library: Path, folder: Path, prepared: Sequence[Prepared]) -> list[tuple[np.ndarray, ...]]:
    """Run the kernel on all prepared cases in one child; returns the outputs of each in their declared shapes."""
    folder.mkdir(exist_ok=True)
    description = []
    for index, item in enumerate(prepared):
        for i, (spec, array) in enumerate(zip(item.case.inputs, item.arrays, strict=True)):
            np.save(folder / f"{index}-in{i}.npy", laid_out(spec, array))
        description.append(
            {
                "name": item.case.name,
                "inputs": [_described(spec) for spec in item.case.inputs],
                "outputs": [_described(spec) for spec in item.outputs],
                "attributes": list(item.case.attributes.values()),
            }
        )
    (folder / "cases.json").write_text(json.dumps(description))
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("kernel_child.py")), str(library), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
    )
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr[-2000:]}"
    return [
        tuple(seen(spec, np.load(folder / f"{index}-out{i}.npy")) for i, spec in enumerate(item.outputs))
        for index, item in enumerate(prepared)
    ]
