"""One reduction inside a loop: its accumulators, how an element joins them, and how they are merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.models.search.ir import Reduce
from agent.models.search.writer import Writer

NEUTRAL: Mapping[str, str] = {
    "sum": "0.0f",
    "prod": "1.0f",
    "max": "-INFINITY",
    "min": "INFINITY",
    "argmax": "-INFINITY",
    "argmin": "INFINITY",
}


@dataclass(frozen=True, slots=True)
class Accumulator:
    """How one `Reduce` is accumulated under the choices."""

    reduce: Reduce
    name: str
    """The variable that holds the result; its partial results are `name` with a number."""
    choices: Mapping[str, str] = field(compare=False)

    @property
    def kind(self) -> str:
        """The reduction's kind."""
        return self.reduce.kind

    @property
    def is_argument(self) -> bool:
        """Whether the result is an index."""
        return self.kind.startswith("arg")

    @property
    def wide(self) -> bool:
        """Whether the sum is kept in double."""
        return self.kind == "sum" and self.choices.get("accumulator") == "double"

    @property
    def compensated(self) -> bool:
        """Whether a second variable carries what each addition loses."""
        return self.kind == "sum" and self.choices.get("accumulator") == "kahan"

    def declare(self, body: Writer, name: str, *, vector: bool, joins: bool = True) -> None:
        """Declare one accumulator at its neutral value; `joins` is false where partial results alone are merged in."""
        neutral = NEUTRAL[self.kind]
        if vector:
            kind = "DoubleVec" if self.wide else "Vec"
            body.line(f"{kind} {name} = {'{}' if self.kind == 'sum' else f'wide({neutral})'};")
            if self.compensated and joins:
                body.line(f"Vec {name}_lost = {{}};")
            if self.is_argument:
                body.line(f"IntVec {name}_at = {{}};")
            return
        kind = "double" if self.wide else "float"
        body.line(f"{kind} {name} = {'0.0' if self.wide else neutral};")
        if self.compensated and joins:
            body.line(f"float {name}_lost = 0.0f;")
        if self.is_argument:
            body.line(f"int64_t {name}_at = 0;")

    def join(self, body: Writer, name: str, term: str, *, vector: bool, index: str = "j") -> None:
        """Let one term (an expression, or a partial result) join the accumulator `name`."""
        if self.kind == "sum" and self.compensated:
            with body.block(""):
                body.line(f"const auto next = {term} - {name}_lost;")
                body.line(f"const auto grown = {name} + next;")
                body.line(f"{name}_lost = (grown - {name}) - next;")
                body.line(f"{name} = grown;")
        elif self.kind == "sum":
            body.line(f"{name} += {f'to_double({term})' if self.wide and vector else term};")
        elif self.kind == "prod":
            body.line(f"{name} *= {term};")
        elif self.is_argument:
            with body.block(""):
                body.line(f"const auto x = {term};")
                body.line(f"const auto take = {self._takes('x', name)};")
                body.line(f"{name} = take ? x : {name};")
                body.line(f"{name}_at = take ? {index} : {name}_at;")
        elif self.choices.get("nan") == "propagate":
            with body.block(""):
                body.line(f"const auto x = {term};")
                body.line(f"{name} = ({self._takes('x', name)}) ? x : {name};")
        else:
            sign = ">" if self.kind == "max" else "<"
            if term.replace("_", "").isalnum():
                body.line(f"{name} = {term} {sign} {name} ? {term} : {name};")
            else:
                with body.block(""):
                    body.line(f"const auto x = {term};")
                    body.line(f"{name} = x {sign} {name} ? x : {name};")

    def _takes(self, term: str, best: str) -> str:
        """The condition under which `term` replaces `best`."""
        sign = ">" if self.kind.endswith("max") else "<"
        if self.is_argument and self.choices.get("ties") == "last":
            sign += "="
        if self.choices.get("nan") != "propagate":
            return f"{term} {sign} {best}"
        if self.is_argument:
            return f"({term} {sign} {best}) | (({term} != {term}) & ({best} == {best}))"
        return f"({term} {sign} {best}) | ({term} != {term})"

    def merge(self, body: Writer, into: str, other: str, *, vector: bool) -> None:
        """Merge the accumulator `other` into `into`."""
        if self.is_argument:
            body.line(f"merge_best({into}, {into}_at, {other}, {other}_at);")
        elif self.kind == "sum":
            body.line(f"{into} += {other};")
        else:
            self.join(body, into, other, vector=vector)

    def merge_function(self) -> str:
        """How two best elements of different lanes or threads are merged: by value, then by index."""
        sign = ">" if self.kind.endswith("max") else "<"
        order = ">" if self.choices.get("ties") == "last" else "<"
        nan = (
            f"\n  const bool is_nan = x != x, best_nan = best != best;"
            f"\n  const bool take = is_nan ? !best_nan || at_x {order} at : !best_nan && (x {sign} best || "
            f"(x == best && at_x {order} at));"
            if self.choices.get("nan") == "propagate"
            else f"\n  const bool take = x {sign} best || (x == best && at_x {order} at);"
        )
        return f"""
// Lanes each keep their own best; of equal ones the index decides.
inline void merge_best(float &best, int64_t &at, float x, int64_t at_x) {{{nan}
  best = take ? x : best;
  at = take ? at_x : at;
}}
"""
