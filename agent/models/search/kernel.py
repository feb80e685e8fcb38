"""The frame that every composed kernel shares: its first lines, its helpers, its entry point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.models.search import prelude, space
from agent.models.search.ir import Attribute, Input, Node, Program, ViewStep, attributes_of, inputs_of
from agent.models.search.writer import Writer

_FLAGS: Mapping[str, str] = {"fast_math": "-ffast-math", "unroll_loops": "-funroll-loops"}


class Frame:
    """Names and pieces of one kernel, filled in by the emitter of its family."""

    def __init__(self, program: Program, root: Node, choices: Mapping[str, str]) -> None:
        self.program = program
        self.root = root
        self.choices = choices
        self.vector = choices.get("simd") == "vector"
        self.dense = choices["layout"] == "assume_contiguous"
        self.inputs: tuple[Input, ...] = inputs_of(root)
        self.attributes: tuple[Attribute, ...] = attributes_of(root)
        self.used: set[str] = set()
        self.body = Writer()
        self.output_dtype = "SB_FLOAT32"
        self.restrict = "__restrict " if choices.get("restrict") == "on" else ""

    def slot(self, at: Input) -> int:
        """Return the number by which the kernel names this view of an input, as in `x0`."""
        return self.inputs.index(at)

    def threaded(self) -> bool:
        """Whether more than one thread works."""
        return self.choices["threads"] != "none"

    def attribute_parameters(self) -> str:
        """`, float eps, …` for a function that takes the attributes."""
        return "".join(f", float {at.name}" for at in self.attributes)

    def attribute_arguments(self) -> str:
        """`, eps, …` for a call of such a function."""
        return "".join(f", {at.name}" for at in self.attributes)

    def source(self, entry: Writer, note: str, *, views: bool = True) -> str:
        """The whole source: flags, choices, helpers, the body's functions, the entry point."""
        flags = " ".join(flag for name, flag in _FLAGS.items() if self.choices.get(name) == "on")
        head = [f"// flags: {flags}"] if flags else []
        head += [space.comment(self.choices), f"// {self.program.name}: {self.program.summary}", f"// {note}"]
        inside = prelude.view_helpers(self._view_steps(), dense=self.dense) if views else ""
        inside += prelude.helpers(self.used, vector=self.vector, lanes=self.choices.get("lanes", "16"))
        text = "\n".join(_wrapped(line) for line in head)
        includes = '#include "sagebook_kernel.h"\n\n' + "".join(f"#include <{name}>\n" for name in _HEADERS)
        includes += "\n#include <omp.h>\n" if self.choices["threads"] == "chunks" else ""
        return (
            f"{text}\n{includes}\nnamespace {{\n{inside}\n{str(self.body).strip()}\n\n}}  // namespace\n\n"
            f"{self._signature()} {{\n{self._checks()}{_indented(str(entry))}  return 0;\n}}\n"
        )

    def _view_steps(self) -> Sequence[ViewStep]:
        return [step for at in self.inputs for step in at.views] + list(self.program.output_views)

    def _signature(self) -> str:
        return (
            'extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, '
            "int64_t n_outputs,\n                               const double *attributes, int64_t n_attributes)"
        )

    def _checks(self) -> str:
        counts = f"n_inputs != {self.program.n_inputs} || n_outputs != 1 || n_attributes < {self.program.n_attributes}"
        lines = [
            f"if ({counts}) return 1;",
            "for (int64_t i = 0; i < n_inputs; ++i) {",
            "  if (inputs[i].dtype != SB_FLOAT32 || inputs[i].ndim > kMaxDims) return 2;",
            "}",
            f"if (outputs[0].dtype != {self.output_dtype} || outputs[0].ndim > kMaxDims) return 2;",
        ]
        lines += [f"const float {at.name} = static_cast<float>(attributes[{at.index}]);" for at in self.attributes]
        lines += [] if self.attributes else ["(void)attributes;"]
        return "".join(f"  {line}\n" for line in lines)

    def view_lines(self) -> list[str]:
        """Declarations of the views of every input, and of the output `out`."""
        lines = [
            f"const View v{slot} = {prelude.view_expression(f'inputs[{at.index}]', at.views)};"
            for slot, at in enumerate(self.inputs)
        ]
        return [*lines, f"const View out = {prelude.view_expression('outputs[0]', self.program.output_views)};"]


_HEADERS = ("algorithm", "cmath", "cstdint", "cstring", "initializer_list", "utility", "vector")


def _wrapped(line: str, width: int = 118) -> str:
    """A comment broken into lines; a line that is read back by machine stays whole."""
    if len(line) <= width or line.startswith(("// choices:", "// flags:")):
        return line
    lines: list[str] = []
    current = "//"
    for word in line.removeprefix("//").split():
        if len(current) + 1 + len(word) > width:
            lines.append(current)
            current = "//"
        current += f" {word}"
    return "\n".join([*lines, current])


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" if line else "\n" for line in text.rstrip("\n").split("\n"))
