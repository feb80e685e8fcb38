"""KernelBench's own evaluation on the CPU, from a checkout: `python -m benchmarks.peers.kernelbench CHECKOUT FOLDER`.

Its `eval_kernel_against_ref` asks for CUDA. Here the calls with which it selects, names, empties and awaits a CUDA
device do nothing, and modules that it imports and never uses here are empty; everything else is its own.
The kernel is the one that our judge gets, behind torch's `load_inline`. Prints one JSON object with seconds.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

from device import operators
from device.languages.cpp import HEADER

_ANSWERS = {
    "is_available": True,
    "current_device": 0,
    "get_device_name": "cpu",
    "device": contextlib.nullcontext(),
    **dict.fromkeys(("set_device", "synchronize", "empty_cache", "reset_peak_memory_stats", "manual_seed")),
}
"""What the calls of `torch.cuda` that stand round its evaluation say here."""

TRIALS, TIMED, TIMES = 5, 100, 5
"""Correctness trials and timed calls of its batch script (`num_correct_trials`, `num_perf_trials`)."""

ROWS, COLUMNS = 512, 1024

MODEL = f"""
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x)

def get_inputs():
    return [torch.randn({ROWS}, {COLUMNS})]

def get_init_inputs():
    return []
"""

_WRAP = """
#include <torch/extension.h>
torch::Tensor run(torch::Tensor x) {
    torch::Tensor y = torch::empty_like(x);
    sb_tensor in{x.data_ptr(), x.dim(), x.sizes().data(), x.strides().data(), SB_FLOAT32};
    sb_tensor out{y.data_ptr(), y.dim(), y.sizes().data(), y.strides().data(), SB_FLOAT32};
    TORCH_CHECK(sagebook_kernel(&in, 1, &out, 1, nullptr, 0) == 0);
    return y;
}
"""


def candidate(name: str, kernel: str, include: Path) -> str:
    """Text of the `ModelNew` that compiles the kernel under that name."""
    return f"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

module = load_inline(
    name={name!r}, cpp_sources={kernel + _WRAP!r}, functions=["run"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"], extra_ldflags=["-fopenmp"],
    extra_include_paths=[{str(include)!r}],
)

class ModelNew(nn.Module):
    def forward(self, x):
        return module.run(x)
"""


def _empty(name: str) -> None:
    """Put an empty module in the place of one that is not installed."""
    if importlib.util.find_spec(name) is None:
        stand_in = ModuleType(name)
        stand_in.__dict__.update(OpenAI=None, completion=None, load_dotenv=None, tqdm=None)
        sys.modules[name] = stand_in


def main() -> int:
    """Evaluate one kernel: compiled, again from torch's cache without and with times."""
    import torch  # noqa: PLC0415 - takes a second

    checkout, folder = Path(sys.argv[1]), Path(sys.argv[2])
    for name in ("requests", "openai", "litellm", "dotenv", "tqdm"):
        _empty(name)
    sys.path.insert(0, str(checkout / "src"))
    kernel = operators.get("gelu").expert or ""
    seconds: dict[str, Any] = {"verdict": [], "verdict and times": []}
    said = io.StringIO()
    with contextlib.ExitStack() as stack:
        for name, answer in _ANSWERS.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, return_value=answer))
        stack.enter_context(contextlib.redirect_stdout(said))
        evaluation = importlib.import_module("kernelbench.eval")

        def judge(source: str, *, times: bool) -> float:
            begin = time.perf_counter()
            result = evaluation.eval_kernel_against_ref(
                MODEL, source, num_correct_trials=TRIALS, num_perf_trials=TIMED, measure_performance=times,
                timing_method="host_time", build_dir=str(folder), device=torch.device("cpu"),
            )  # fmt: skip
            took = time.perf_counter() - begin
            if result is None or not result.correctness or (times and result.runtime <= 0):
                raise SystemExit(f"KernelBench's evaluation gave {result}\n{said.getvalue()}")
            return took

        folder.mkdir(parents=True, exist_ok=True)
        source = candidate(f"sagebook_bench_{os.getpid()}", kernel, HEADER.parent)
        seconds["compile and verdict"] = [judge(source, times=False)]
        seconds["verdict"] = [judge(source, times=False) for _ in range(TIMES)]
        seconds["verdict and times"] = [judge(source, times=True)]
    print(json.dumps(seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
