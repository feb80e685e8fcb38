"""Choices of one kernel: which decisions are open to it, what a draft takes, and how a source carries them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

from agent.models.search import rows
from agent.models.search.dimensions import DIMENSIONS, Dimension, Traits
from agent.models.search.ir import Apply, MatMul, Node, Program, Recipe, Reduce, children, per_row, walk

Choices = dict[str, str]


BY_NAME: Mapping[str, Dimension] = {dimension.name: dimension for dimension in DIMENSIONS}


def family_of(program: Program) -> str:
    """Which emitter composes the program: attention, matmul, reduction, layout or elementwise."""
    nodes = list(walk(program.root))
    products = [node for node in nodes if isinstance(node, MatMul)]
    if len(products) == 2:
        return "attention"
    if products:
        return "matmul"
    if any(isinstance(node, (Reduce, Recipe)) for node in nodes):
        return "reduction"
    is_view = not isinstance(program.root, Apply)
    return "layout" if is_view else "elementwise"


def traits_of(program: Program) -> Traits:  # noqa: C901  (one case for each kind of node)
    """What the program holds that choices depend on."""
    marks: set[str] = set()
    lowered = rows.lower(program.root, {})
    for node in (*walk(program.root), *walk(lowered)):
        match node:
            case Apply("exp" | "tanh" | "expm1"):
                marks.add("exp")
            case Apply("erfc"):
                marks |= {"cdf", "erf"}
            case Apply("erf"):
                marks.add("erf")
            case Apply("log" | "log1p"):
                marks.add("log")
            case Recipe("softmax" | "logsumexp"):
                marks |= {"softmax"}
            case Recipe("var"):
                marks |= {"variance"}
            case Reduce("argmax" | "argmin"):
                marks |= {"argument", "order"}
            case Reduce("sum") | MatMul():
                marks.add("sum")
            case _:
                pass
    if family_of(program) == "attention" or any(rows.divides_by_row(node) for node in walk(lowered)):
        marks.add("quotient")
    if any(isinstance(node, Reduce) and node.kind in {"max", "min"} for node in walk(program.root)):
        marks.add("order")
    family = family_of(program)
    marks |= {"eps"} if rows.has_epsilon(program.root) else set()
    marks |= {"map"} if not per_row(program.root) else set()
    marks |= {"exp_map"} if "softmax" in marks and _exp_in_result(lowered) else set()
    marks |= {"epilogue"} if family == "matmul" and not isinstance(program.root, MatMul) else set()
    return Traits(family, frozenset(marks))


def _exp_in_result(node: Node) -> bool:
    if isinstance(node, Reduce):
        return False
    if isinstance(node, Apply) and node.op == "exp" and not per_row(node):
        return True
    return any(_exp_in_result(child) for child in children(node))


def settle(traits: Traits, wanted: Mapping[str, str]) -> Choices:
    """Every choice that applies, with what was wanted where it is known, else plain; in the order of `DIMENSIONS`."""
    choices: Choices = {}
    for dimension in DIMENSIONS:
        value = wanted.get(dimension.name, dimension.values[0])
        choices[dimension.name] = value if value in dimension.values else dimension.values[0]
    # A choice that does not apply is set to its plain value first: others look at it.
    for _ in range(3):
        for dimension in DIMENSIONS:
            if not _open(dimension, traits, choices):
                choices[dimension.name] = dimension.values[0]
    if choices["simd"] != "vector" and choices["tail"] in {"padded", "masked"} and traits.family != "matmul":
        choices["tail"] = "scalar"  # a step of single elements has nothing to pad
    if choices["simd"] == "pragma" and traits.family == "layout":
        choices["simd"] = "none"  # no pragma makes a vector of a strided walk
    if traits.family == "attention" and choices["accumulator"] in {"double", "kahan"}:
        choices["accumulator"] = "blocked"  # a whole row of sums is kept, so blocks are the way to shorten them
    if choices["simd"] == "pragma" and choices["accumulator"] == "kahan":
        choices["accumulator"] = "double"  # a simd reduction has no room for the compensation
    return {d.name: choices[d.name] for d in DIMENSIONS if _open(d, traits, choices)}


def _open(dimension: Dimension, traits: Traits, choices: Mapping[str, str]) -> bool:
    return traits.family in dimension.families and dimension.applies(traits, choices)


def dimensions(traits: Traits, choices: Mapping[str, str]) -> tuple[Dimension, ...]:
    """The decisions that are open, given the others."""
    settled = settle(traits, choices)
    return tuple(dimension for dimension in DIMENSIONS if dimension.name in settled)


def draft(traits: Traits, rng: random.Random) -> Choices:
    """A first draft: what a plain author would write, with the mistakes that a plain author makes."""
    wanted = {d.name: rng.choices(d.values, weights=d.draft)[0] for d in DIMENSIONS}
    return settle(traits, wanted)


def comment(choices: Mapping[str, str]) -> str:
    """The line by which a source carries its choices."""
    return "// choices: " + ", ".join(f"{name}={value}" for name, value in choices.items())


def parse(source: str) -> Choices:
    """The choices that a source carries; empty where it carries none."""
    for line in source.splitlines()[:8]:
        if line.startswith("// choices: "):
            pairs: Iterable[str] = line.removeprefix("// choices: ").split(", ")
            return dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    return {}
