"""What the text of a `ModelNew` may not hold: read, before any of it is run, beside what the sandbox allows.

Each rule is one row of a table, and what it means when it does not hold is data (`device.cheats.level`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from device.cheats import Finding, settled
from device.types import Check

MODULES = frozenset(
    {"torch", "math", "cmath", "typing", "functools", "itertools", "operator", "collections", "dataclasses", "enum",
     "numpy", "einops", "warnings", "abc", "__future__"}
)  # fmt: skip
"""Modules that compute; what starts threads or processes, reads clocks, frames, memory or files is none of them."""

BUILDERS = frozenset({"load_inline", "cpp_extension", "triton", "cuda", "RawKernel"})
CALLS = frozenset({"eval", "exec", "compile", "__import__", "open", "globals", "locals", "vars", "setattr", "delattr",
                   "input", "breakpoint"})  # fmt: skip
REACHES = frozenset({"sys", "os", "gc", "ctypes", "inspect", "threading", "subprocess", "multiprocessing", "builtins",
                     "importlib", "_dynamo", "ops", "library"})  # fmt: skip
"""Attributes by which one module gives another that may not be imported."""

STREAMS = frozenset({"Stream", "stream", "fork", "_fork", "wait", "async_op", "ThreadPoolExecutor"})
BASES = frozenset({"Tensor", "Parameter", "Model", "TorchDispatchMode", "TorchFunctionMode"})
COMPUTES = frozenset({"matmul", "mm", "bmm", "conv2d", "conv3d", "conv1d", "linear", "softmax", "layer_norm",
                      "scaled_dot_product_attention", "einsum", "addmm", "relu", "gelu"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class TextCheck:
    """One thing that a module may not do, and the kinds of cheat that it stops."""

    name: str
    find: Callable[[ast.Module], Iterator[Finding]]
    cheats: tuple[int, ...]


def _imports(tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{'.' * node.level}{node.module or ''}"]
        for name in names:
            if name.partition(".")[0] not in MODULES:
                yield Finding(getattr(node, "lineno", 0), f"import of {name}")


def _builds(tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        for name in _names(node):
            if BUILDERS & set(name.split(".")):
                advice = "a kernel is given as `load_kernel(text)`, which the judge compiles"
                yield Finding(getattr(node, "lineno", 0), f"{name} builds while it is run; {advice}")


def _calls(tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in CALLS:
            yield Finding(node.lineno, node.id)
        elif isinstance(node, ast.Attribute) and (
            node.attr in REACHES or (node.attr.startswith("__") and node.attr != "__init__")
        ):
            yield Finding(node.lineno, f".{node.attr}")


def _patches(tree: ast.Module) -> Iterator[Finding]:
    modules = {alias.asname or alias.name.partition(".")[0] for node in ast.walk(tree)
               if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            root = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in modules:
                yield Finding(node.lineno, f"{ast.unparse(node)} is set: what others use stays as it is")


def _falls_back(tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Try, ast.TryStar)):
            yield Finding(node.lineno, "try: what runs when the kernel fails is not the kernel")


def _streams(tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        for name in _names(node):
            if STREAMS & set(name.split(".")[1:]):
                yield Finding(getattr(node, "lineno", 0), f"{name}: work runs where it is called")


def _classes(tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for base in map(ast.unparse, node.bases):
                if base.rpartition(".")[2] in {
                    "Tensor",
                    "Parameter",
                    "Model",
                    "TorchDispatchMode",
                    "TorchFunctionMode",
                }:
                    yield Finding(node.lineno, f"{node.name} inherits {base}")


def _torch_computes(tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in COMPUTES:
            yield Finding(node.lineno, f"{ast.unparse(node.func)} is torch's kernel, not the candidate's")


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Attribute):
        return [ast.unparse(node)] if isinstance(node.value, (ast.Name, ast.Attribute)) else [f".{node.attr}"]
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


CHECKS: tuple[TextCheck, ...] = (
    TextCheck("builds nothing itself", _builds, (16,)),
    TextCheck("imports what computes", _imports, (16, 18, 21, 23, 26)),
    TextCheck("plain calls", _calls, (4, 25, 26)),
    TextCheck("patches nothing", _patches, (23,)),
    TextCheck("no fallback", _falls_back, (17,)),
    TextCheck("no streams or threads", _streams, (20, 21)),
    TextCheck("plain classes", _classes, (18, 22)),
)


def check(tree: ast.Module) -> tuple[Check, ...]:
    """Apply every rule; one that was broken has `ok` False and a detail that names the line.

    That torch computes is told, not refused: a `ModelNew` may be a better way to call torch.
    """
    checks = []
    for rule in CHECKS:
        found = next(rule.find(tree), None)
        checks.append(Check(rule.name, found is None, f"line {found.line}: {found.what}" if found else ""))
    torch = next(_torch_computes(tree), None)
    told = f"warning: line {torch.line}: {torch.what}" if torch else ""
    return (*settled(checks), Check("kernels of its own", ok=True, detail=told))
