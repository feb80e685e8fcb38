"""The `python` language: a KernelBench `ModelNew` around one C++ kernel. It is read, and never run.

What such a module may be is so little that its syntax tree shows all of it:

    from sagebook import load_kernel
    from torch import nn

    kernel = load_kernel(r\"\"\" ... C++ against sagebook_kernel.h ... \"\"\")

    class ModelNew(nn.Module):
        def forward(self, x):
            return kernel(x)

Each rule below refuses by name what goes beyond that: a call of torch, a fallback, an inherited forward, a kernel whose
result is dropped. The kernel's text is then judged as `cpp` is, in the sandboxed worker. A candidate that can only be
judged by running its Python (`load_inline`, Triton) is refused.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from device import cheats
from device.cheats import Finding
from device.languages import cpp
from device.types import Build, Check, Limits

LAUNCHER, MODULE = "load_kernel", "ModelNew"
_MODULES = frozenset({"__future__", "math", "typing", "torch", "torch.nn"})
_BASES = frozenset({"nn.Module", "torch.nn.Module"})
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class PythonCheck:
    """One thing that a module may not do, and the kinds of cheat that it stops."""

    name: str
    find: Callable[[ast.Module], Iterator[Finding]]
    cheats: tuple[int, ...]


def _plain_imports(tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            launcher = node.module == "sagebook" and names == {LAUNCHER}
            if node.level or not (launcher or node.module in _MODULES):
                yield Finding(node.lineno, f"import of {'.' * node.level}{node.module or ''}")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name not in _MODULES:
                    yield Finding(node.lineno, f"import of {alias.name}")


def _plain_class(tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        bases = [ast.unparse(base) for base in node.bases]
        if node.name != MODULE:
            yield Finding(node.lineno, f"class {node.name}: the only class is {MODULE}")
        elif len(bases) != 1 or bases[0] not in _BASES or node.keywords or node.decorator_list:
            yield Finding(node.lineno, f"{MODULE} inherits {', '.join(bases) or 'nothing'}: only nn.Module is plain")


def _no_fallback(tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Try, ast.TryStar)):
            yield Finding(node.lineno, "try: what runs when the kernel fails is not the kernel")
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield Finding(node.lineno, "with: the kernel runs where it is called, on no other stream or mode")


def _only_the_kernel(tree: ast.Module) -> Iterator[Finding]:
    """The body of the module holds the kernel's text and the class, and nothing that computes or patches."""
    for node in tree.body:
        known = isinstance(node, (ast.Import, ast.ImportFrom, ast.ClassDef)) or _is_text(node)
        if not known and _kernel_of(node) is None:
            yield Finding(node.lineno, f"{_short(node)}: the module holds only {LAUNCHER}(text) and {MODULE}")
    for node in (part for item in tree.body if isinstance(item, ast.ClassDef) for part in item.body):
        if _is_text(node) or (isinstance(node, ast.FunctionDef) and node.name in {"__init__", "forward"}):
            continue
        yield Finding(node.lineno, f"{_short(node)}: {MODULE} holds only __init__ and forward")
    for function in _functions(tree, "__init__"):
        for node in function.body:
            if not (_is_text(node) or ast.unparse(node) == "super().__init__()" or _keeps_argument(node)):
                yield Finding(node.lineno, f"{_short(node)}: __init__ only keeps its arguments")


def _forward_launches(tree: ast.Module) -> Iterator[Finding]:
    """`forward` gives all its inputs to the kernel, in order, and returns what that gives."""
    functions = _functions(tree, "forward")
    if len(functions) != 1:
        yield Finding(0, f"{MODULE} must have one forward, found {len(functions)}")
        return
    (function,) = functions
    kernels = {name for node in tree.body if (name := _kernel_of(node)) is not None}
    plain = function.args
    names = [argument.arg for argument in plain.args[1:]]
    strange = plain.vararg or plain.kwarg or plain.kwonlyargs or plain.posonlyargs or plain.defaults
    body = [node for node in function.body if not _is_text(node)]
    wanted = {f"return {kernel}({', '.join(names)})" for kernel in kernels}
    if strange or function.decorator_list or [ast.unparse(node) for node in body] not in [[line] for line in wanted]:
        line = next(iter(wanted), f"return kernel({', '.join(names)})")
        yield Finding(function.lineno, f"forward must be `{line}`, found `{_short(body[-1] if body else function)}`")


def _one_kernel(tree: ast.Module) -> Iterator[Finding]:
    count = sum(_kernel_of(node) is not None for node in tree.body)
    if count != 1:
        yield Finding(0, f"there must be one `kernel = {LAUNCHER}(text)`, found {count}")


CHECKS: tuple[PythonCheck, ...] = (
    PythonCheck("plain module class", _plain_class, (18, 22)),
    PythonCheck("plain imports", _plain_imports, (16, 18, 21, 23, 26)),
    PythonCheck("no fallback", _no_fallback, (17, 20)),
    PythonCheck("forward launches the kernel", _forward_launches, (1, 2, 16, 19, 22, 33)),
    PythonCheck("nothing but the kernel", _only_the_kernel, (4, 23, 26)),
    PythonCheck("one kernel", _one_kernel, (19,)),
)


def check(tree: ast.Module) -> tuple[Check, ...]:
    """Apply every rule; one that was broken has `ok` False and a detail that names the line."""
    checks = []
    for rule in CHECKS:
        found = next(rule.find(tree), None)
        checks.append(Check(rule.name, found is None, f"line {found.line}: {found.what}" if found else ""))
    return tuple(checks)


def build(source: str, limits: Limits, masks: Sequence[Path] = ()) -> Build:
    """Read the module, and compile the one kernel in it. Raises what `cpp.build` raises."""
    begin = time.monotonic()
    try:
        tree = ast.parse(source)
        checks = check(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = f"the module cannot be read: {error}"
        return Build("compile_error", (), time.monotonic() - begin, reason, summary=reason)
    if refusal := cheats.first_refusal(checks):
        reason = f"{refusal.name}: {refusal.detail}"
        return Build("refused", (), time.monotonic() - begin, "", summary=reason, checks=checks)
    (text,) = [_text_of(node) for node in tree.body if _kernel_of(node) is not None]
    built = cpp.build(text, limits, masks)
    return replace(built, checks=(*checks, *built.checks))


def _functions(tree: ast.Module, name: str) -> list[ast.FunctionDef]:
    parts = [part for item in tree.body if isinstance(item, ast.ClassDef) for part in item.body]
    return [part for part in parts if isinstance(part, ast.FunctionDef) and part.name == name]


def _kernel_of(node: ast.stmt) -> str | None:
    """Name that `name = load_kernel("text")` gives its kernel, None where the statement is something else."""
    if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)):
        return None
    call = node.value
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == LAUNCHER):
        return None
    literal = len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
    return node.targets[0].id if literal and not call.keywords else None


def _text_of(node: ast.stmt) -> str:
    assert isinstance(node, ast.Assign)  # noqa: S101  (_kernel_of looked)
    assert isinstance(node.value, ast.Call)  # noqa: S101  (the same)
    assert isinstance(node.value.args[0], ast.Constant)  # noqa: S101  (the same)
    return str(node.value.args[0].value)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _keeps_argument(node: ast.stmt) -> bool:
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and len(node.targets) == 1):
        return False
    target = node.targets[0]
    return isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self" and target.attr == node.value.id


def _short(node: ast.stmt) -> str:
    first = ast.unparse(node).splitlines()[0]
    return first if len(first) <= _SHOWN else f"{first[:_SHOWN]}…"
