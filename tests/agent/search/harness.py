"""Composes kernels, compiles them with g++, and runs them in a child process through their real entry point."""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import device.languages
from agent.models.search import space
from agent.models.search.emit import emit
from agent.models.search.ir import Program
from agent.models.search.translate import translate
from agent.port import OperatorCard

HEADERS = next(iter(device.languages.__path__))
RUNNER = Path(__file__).with_name("runner.py")
FLAGS = ("-std=c++17", "-O1", "-march=native", "-fopenmp", "-shared", "-fPIC", "-Wno-psabi", f"-I{HEADERS}")


Call = tuple[list[np.ndarray], tuple[int, ...], str, list[float]]
"""Inputs, shape and dtype of the output, attributes."""


def card(
    name: str, reference: str, *, cases: Sequence[str] = (), attributes: tuple[str, ...] = (), family: str = ""
) -> OperatorCard:
    """A card as the workbench gives it, for an operator that exists in this test only."""
    return OperatorCard(name, 1, family, f"the operator {name}", reference, ("float32",), tuple(cases), attributes, "")


def bundled(name: str) -> OperatorCard:
    """The card of an operator of the device's suite."""
    from device import operators

    found = operators.get(name)
    lines = tuple(case.line for case in found.cases)
    reference = operators.reference_source(found)
    return OperatorCard(
        name, found.level, found.family, found.summary, reference, ("float32",), lines, found.attributes, ""
    )


@dataclass(frozen=True)
class Kernel:
    """A composed and compiled kernel."""

    source: str
    library: Path

    def run(
        self,
        inputs: Sequence[np.ndarray],
        shape: tuple[int, ...],
        *,
        attributes: Sequence[float] = (),
        dtype: str = "float32",
    ) -> np.ndarray:
        """Its output for one call; elements that it never writes stay at -777."""
        return self.run_all([(list(inputs), shape, dtype, list(attributes))])[0]

    def run_all(self, calls: Sequence[Call]) -> list[np.ndarray]:
        """Its outputs for several calls, all from one child process."""
        done = subprocess.run(
            [sys.executable, str(RUNNER)],
            input=pickle.dumps((str(self.library), list(calls))),
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, f"exit {done.returncode}: {done.stderr.decode()[-800:]}"
        return pickle.loads(done.stdout)  # noqa: S301  (our own child's)


def composed(about: OperatorCard, wanted: Mapping[str, str]) -> tuple[Program, space.Choices, str]:
    """The program, its settled choices and its source."""
    program = translate(about)
    traits = space.traits_of(program)
    choices = space.settle(traits, wanted)
    return program, choices, emit(traits.family, program, choices)


def compiled(source: str, folder: Path) -> Kernel:
    """Compile a source as the device does, with little optimization for speed of the test."""
    name = hashlib.sha256(source.encode()).hexdigest()[:16]
    file, library = folder / f"{name}.cpp", folder / f"{name}.so"
    file.write_text(source)
    asked = [line.removeprefix("// flags:").split() for line in source.splitlines()[:3] if line.startswith("// flags:")]
    command = ["g++", *FLAGS, str(file), "-o", str(library), *(asked[0] if asked else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return Kernel(source, library)


def compiled_all(sources: Sequence[str], folder: Path) -> list[Kernel]:
    """Compile several at once, on both cores."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda source: compiled(source, folder), sources))


def kernel(about: OperatorCard, wanted: Mapping[str, str], folder: Path) -> Kernel:
    """Compose and compile in one go."""
    return compiled(composed(about, wanted)[2], folder)
