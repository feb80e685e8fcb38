"""Tiny checkouts in the forms of the two public suites, written for these tests alone."""

from __future__ import annotations

from pathlib import Path

LINE = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.line = nn.Linear(size, size)

    def forward(self, x):
        return torch.relu(self.line(x))


def get_inputs():
    return [torch.randn(16, 24)]


def get_init_inputs():
    return [24]
"""

PLAIN = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return {body}


def get_inputs():
    return [torch.randn(16, 24)]


def get_init_inputs():
    return []
"""

KERNELBENCH = {
    "level1/1_Line.py": LINE,
    "level1/2_Twice.py": PLAIN.format(body="x * 2"),
    "level1/3_NoModel.py": PLAIN.format(body="x").replace("class Model(", "class Other("),
    "level1/4_Imports.py": "import a_module_that_nobody_has\n" + PLAIN.format(body="x * 2"),
    "level1/5_Text.py": PLAIN.format(body="'text'"),
    "level2/6_Constant.py": PLAIN.format(body="torch.softmax(x.sum(-1, keepdim=True), dim=-1)"),
    "level2/7_Deaf.py": PLAIN.format(body="torch.arange(12.0) + 0 * x.sum()"),
    "level2/8_Copy.py": PLAIN.format(body="x.clone()"),
    "level2/9_Broken.py": "class Model(\n",
    "level2/10_Hangs.py": PLAIN.format(body="x * 2").replace("    return []", "    while True: pass"),
}

MODULE = """import torch
import torch_npu
from torch_npu.contrib import transfer_to_npu
import kernel_gen_ops


class Model(torch.nn.Module):
    def __init__(self, gain, shift):
        super().__init__()
        self.gain, self.shift = gain, shift

    def forward(self, x, factor):
        return [x * factor * self.gain + self.shift]


class ModelNew(torch.nn.Module):
    def forward(self, x, factor):
        return kernel_gen_ops.scaled(x, factor)
"""

PREPARE = """import torch
from framework.utils import check_precision


def get_inputs(row, device=None):
    return [torch.randn(eval(row.get("shape")), dtype=getattr(torch, row.get("dtype")), device=device), row.get("factor")]


def get_init_inputs(row, device=None):
    return [torch.randn(eval(row.get("shape"))[-1:], dtype=getattr(torch, row.get("dtype"))), float(row.get("shift"))]
"""

CASES = "case_id;shape;dtype;factor;shift\n0;[8, 16];float;2.0;0.5\n1;[3, 5];float32;-1.5;2\n"


def kernelbench(folder: Path, *names: str) -> Path:
    """Write a checkout with those tasks, or all."""
    for name in names or KERNELBENCH:
        file = folder / "KernelBench" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(KERNELBENCH[name], encoding="utf-8")
    return folder


def npukernelbench(folder: Path) -> Path:
    """Write a checkout with one good task and three that are refused."""
    for name, prepare, cases in (
        ("Math/Scaled", PREPARE, CASES),
        ("Math/NoCases", PREPARE, None),
        ("Math/Named", PREPARE.replace('row.get("factor")]', "'a name']"), CASES),
        ("Index/Offsets", PREPARE.replace('row.get("factor")]', "torch.arange(9)]"), CASES),
    ):
        validation = folder / "tasks" / "level1" / name / "validation"
        validation.mkdir(parents=True)
        (validation / "module.py").write_text(MODULE, encoding="utf-8")
        (validation / "prepare_inputs.py").write_text(prepare, encoding="utf-8")
        if cases is not None:
            (validation / "test_cases.csv").write_text(cases, encoding="utf-8")
    return folder
