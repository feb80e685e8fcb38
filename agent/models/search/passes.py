"""One pass over a row: a loop that reduces, a loop that writes, in scalar, pragma or vector form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.models.search.accumulate import NEUTRAL, Accumulator
from agent.models.search.expression import Printer
from agent.models.search.ir import Apply, Const, First, Input, Node, Reduce, children, per_row, walk
from agent.models.search.kernel import Frame
from agent.models.search.writer import Writer

BLOCK = 512


@dataclass(slots=True)
class Row:
    """What the loops of one row know: the frame, where text goes, and the names of row numbers found so far."""

    frame: Frame
    body: Writer
    named: dict[Node, str] = field(default_factory=dict)
    stored: Node | None = None
    """The element value that an earlier pass left in the output."""
    scalars: int = 0
    floats: set[Node] = field(default_factory=set)
    """Row numbers that were brought to float for use in loops."""

    @property
    def general(self) -> bool:
        """Whether elements lie a stride apart."""
        return self.frame.choices["layout"] == "general"

    def load(self, *, vector: bool, at: str = "j", how: str = "load", rest: str = "") -> Callable[[Input], str]:
        """The text that reads an input's element (or vector) at `at`."""

        def text(node: Input) -> str:
            slot = self.frame.slot(node)
            if not vector:
                where = f"{_factor(at)} * s{slot}" if self.general else at
                return f"x{slot}[{where}]"
            return f"{how}(x{slot} + {at}{rest})"

        return text

    def printer(self, *, vector: bool, at: str = "j", how: str = "load", rest: str = "", prefix: str = "t") -> Printer:
        """A printer of element expressions at index `at`."""
        named = dict(self.named)
        if self.stored is not None:
            y = f"y[{_factor(at)} * sy]" if self.general else f"y[{at}]"
            named[self.stored] = f"{how}(y + {at}{rest})" if vector else y
        return Printer(
            vector=vector,
            load=self.load(vector=vector, at=at, how=how, rest=rest),
            named=named,
            length=lambda _: "static_cast<float>(n)",
            choices=self.frame.choices,
            emit=self.body.line,
            used=self.frame.used,
            prefix=prefix,
        )

    def hoist(self, root: Node) -> None:
        """Name every row number in an element expression before the loop that uses it."""
        in_double = (
            isinstance(root, Reduce) and root.kind == "sum" and self.frame.choices.get("accumulator") == "double"
        )
        if isinstance(root, (Const, Input)) or (root in self.named and not in_double) or root in self.floats:
            return
        if not per_row(root):
            for child in children(root):
                self.hoist(child)
        elif in_double or isinstance(root, (Apply, First)):
            text = self.row_value(root)
            name = f"r{self.scalars}"
            self.scalars += 1
            self.body.line(f"const float {name} = {_as_float(self.frame, text)};")
            self.named[root] = name
            self.floats.add(root)

    def row_value(self, root: Node) -> str:
        """A row number as an expression of the row numbers found so far."""
        for first in [node for node in walk(root) if isinstance(node, First) and node not in self.named]:
            self.hoist(first.arg)
            value = self.printer(vector=False, at="0").value(first.arg)
            self.body.line(f"const float origin{self.scalars} = {value};")
            self.named[first] = f"origin{self.scalars}"
            self.scalars += 1
        return self.printer(vector=False).value(root)


def _factor(at: str) -> str:
    return f"({at})" if " " in at else at


def _as_float(frame: Frame, text: str) -> str:
    return f"static_cast<float>({text})" if frame.choices.get("accumulator") == "double" else text


def reduce_pass(row: Row, accumulators: Sequence[Accumulator], low: str, high: str, store: Node | None = None) -> None:
    """Declare each accumulator's result and compute it over [low, high); `store` is left in the output on the way."""
    for accumulator in accumulators:
        row.hoist(accumulator.reduce.arg)
    if row.frame.choices.get("accumulator") == "blocked" and low == "0" and any(a.kind == "sum" for a in accumulators):
        _blocked(row, accumulators, store)
        return
    match row.frame.choices.get("simd", "none"):
        case "pragma" if not row.general:
            _pragma(row, accumulators, low, high, store)
        case "vector" if not row.general:
            _vector(row, accumulators, low, high, store)
        case _:
            _scalar(row, accumulators, low, high, store)


def _blocked(row: Row, accumulators: Sequence[Accumulator], store: Node | None) -> None:
    body = row.body
    body.line(f"// Sums of {BLOCK} elements, then the sum of those: the error grows with the block, not with the row.")
    for accumulator in accumulators:
        accumulator.declare(body, accumulator.name, vector=False, joins=False)
    with body.block(f"for (int64_t from = 0; from < n; from += {BLOCK})"):
        body.line(f"const int64_t to = std::min(n, from + int64_t{{{BLOCK}}});")
        inner = [Accumulator(a.reduce, f"part_{a.name}", a.choices) for a in accumulators]
        reduce_pass(row, inner, "from", "to", store)
        for accumulator, part in zip(accumulators, inner, strict=True):
            accumulator.merge(body, accumulator.name, part.name, vector=False)


def _terms(
    row: Row, accumulators: Sequence[Accumulator], names: Mapping[Accumulator, str], *, vector: bool, at: str,
    store: Node | None = None, rest: str = "", prefix: str = "t",
) -> None:  # fmt: skip
    """The body of one step at index `at`; `rest` names the number of lanes that count, in a last part step."""
    tail = row.frame.choices.get("tail", "scalar")
    how, extra = (f"load_{tail}", f", {rest}, 1.0f") if rest else ("load", "")
    if rest:
        row.frame.used.add(how)
    printer = row.printer(vector=vector, at=at, how=how, rest=extra, prefix=prefix)
    for accumulator in accumulators:
        term = printer.value(accumulator.reduce.arg)
        if vector and per_row(accumulator.reduce.arg):
            term = f"wide({term})"
        if store is not None and store not in printer.named:
            row.body.line(f"const auto {prefix}e = {printer.value(store)};")
            printer.named[store] = f"{prefix}e"
            term = printer.value(accumulator.reduce.arg)
        if rest:
            row.frame.used.add("keep")
            term = f"keep({term}, {rest}, {NEUTRAL[accumulator.kind]})"
        index = f"lane_index + static_cast<int32_t>({at})" if vector else at
        accumulator.join(row.body, names[accumulator], term, vector=vector, index=index)
    if store is not None:
        _write(row, at, printer.named[store], vector=vector, rest=rest)


def _write(row: Row, at: str, value: str, *, vector: bool, rest: str = "") -> None:
    if rest:
        row.frame.used.add("store_part")
        row.body.line(f"store_part(y + {at}, {value}, {rest});")
    elif vector:
        row.body.line(f"store(y + {at}, {value});")
    else:
        row.body.line(f"y[{f'{_factor(at)} * sy' if row.general else at}] = {value};")


def _scalar(row: Row, accumulators: Sequence[Accumulator], low: str, high: str, store: Node | None) -> None:
    body, count = row.body, int(row.frame.choices.get("accumulators", "1"))
    for a in accumulators:
        a.declare(body, a.name, vector=False)
    results = {a: a.name for a in accumulators}
    if count == 1:
        with body.block(f"for (int64_t j = {low}; j < {high}; ++j)"):
            _terms(row, accumulators, results, vector=False, at="j", store=store)
        return
    for u in range(1, count):
        for a in accumulators:
            a.declare(body, f"{a.name}{u}", vector=False)
    with body.block(""):
        body.line(f"int64_t j = {low};")
        with body.block(f"for (; j + {count} <= {high}; j += {count})"):
            for u in range(count):
                names = results if u == 0 else {a: f"{a.name}{u}" for a in accumulators}
                at = f"j + {u}" if u else "j"
                _terms(row, accumulators, names, vector=False, at=at, store=store, prefix=f"t{u}_")
        for u in range(1, count):
            for a in accumulators:
                a.merge(body, a.name, f"{a.name}{u}", vector=False)
        if row.frame.choices.get("tail") != "ignored":
            with body.block(f"for (; j < {high}; ++j)"):
                _terms(row, accumulators, results, vector=False, at="j", store=store)


def _vector(row: Row, accumulators: Sequence[Accumulator], low: str, high: str, store: Node | None) -> None:
    body, frame = row.body, row.frame
    count, tail = int(frame.choices.get("accumulators", "1")), frame.choices.get("tail", "scalar")
    for a in accumulators:
        a.declare(body, a.name, vector=False, joins=tail == "scalar")
        frame.used |= {"to_double"} if a.wide else set()
    results = {a: a.name for a in accumulators}
    with body.block(""):
        lanes = [{a: f"{a.name}_v{u}" for a in accumulators} for u in range(count)]
        for names in lanes:
            for a in accumulators:
                a.declare(body, names[a], vector=True)
        body.line(f"int64_t j = {low};")
        if count > 1:
            with body.block(f"for (; j + {count} * kLanes <= {high}; j += {count} * kLanes)"):
                for u, names in enumerate(lanes):
                    at = f"j + {u} * kLanes" if u else "j"
                    _terms(row, accumulators, names, vector=True, at=at, store=store, prefix=f"t{u}_")
        with body.block(f"for (; j + kLanes <= {high}; j += kLanes)"):
            _terms(row, accumulators, lanes[0], vector=True, at="j", store=store)
        if tail in {"padded", "masked"}:
            with body.block(f"if (j < {high})"):
                body.line(f"const int64_t rest = {high} - j;")
                _terms(row, accumulators, lanes[0], vector=True, at="j", store=store, rest="rest")
        for a in accumulators:
            _across_lanes(row, a, [names[a] for names in lanes])
        if tail == "scalar":
            with body.block(f"for (; j < {high}; ++j)"):
                _terms(row, accumulators, results, vector=False, at="j", store=store)


def _across_lanes(row: Row, a: Accumulator, parts: Sequence[str]) -> None:
    """Bring the lanes of all partial results together in the scalar result."""
    body = row.body
    if a.kind == "sum":
        row.frame.used.add("sum_lanes")
        body.line(f"{a.name} = sum_lanes({' + '.join(parts)});")
        return
    for part in parts:
        with body.block("for (int lane = 0; lane < kLanes; ++lane)"):
            if a.is_argument:
                body.line(f"merge_best({a.name}, {a.name}_at, {part}[lane], {part}_at[lane]);")
            else:
                a.join(body, a.name, f"{part}[lane]", vector=False)


def _pragma(  # noqa: C901  (one loop, written from top to bottom)
    row: Row, accumulators: Sequence[Accumulator], low: str, high: str, store: Node | None
) -> None:
    body, nan = row.body, row.frame.choices.get("nan") == "propagate"
    signs = {"sum": "+", "prod": "*", "max": "max", "min": "min", "argmax": "max", "argmin": "min"}
    clauses = ""
    for a in accumulators:
        Accumulator(a.reduce, a.name, a.choices).declare(body, a.name, vector=False)
        clauses += f" reduction({signs[a.kind]} : {a.name})"
        if nan and a.kind not in {"sum", "prod"}:
            body.line(f"bool {a.name}_nan = false;")
            clauses += f" reduction(| : {a.name}_nan)"
    body.line(f"#pragma omp simd{clauses}")
    with body.block(f"for (int64_t j = {low}; j < {high}; ++j)"):
        printer = row.printer(vector=False)
        for a in accumulators:
            term = printer.value(a.reduce.arg)
            if store is not None and store not in printer.named:
                body.line(f"const float e = {printer.value(store)};")
                printer.named[store] = "e"
                term = printer.value(a.reduce.arg)
            if a.kind in {"sum", "prod"}:
                body.line(f"{a.name} {'+' if a.kind == 'sum' else '*'}= {term};")
                continue
            body.line(f"const float x_{a.name} = {term};")
            body.line(
                f"{a.name} = x_{a.name} {'>' if signs[a.kind] == 'max' else '<'} {a.name} ? x_{a.name} : {a.name};"
            )
            if nan:
                body.line(f"{a.name}_nan |= x_{a.name} != x_{a.name};")
        if store is not None:
            _write(row, "j", printer.named[store], vector=False)
    for a in accumulators:
        if nan and a.kind in {"max", "min"}:
            body.line(f"if ({a.name}_nan) {a.name} = NAN;")
        if a.is_argument:
            _find(row, a, low, high, nan=nan)


def _find(row: Row, a: Accumulator, low: str, high: str, *, nan: bool) -> None:
    """The index of the value that a vectorized maximum has found."""
    body = row.body
    body.line("// The value first, in vectors; then where it is.")
    heads = {
        "first": f"for (int64_t j = {low}; j < {high}; ++j)",
        "last": f"for (int64_t j = {high} - 1; j >= {low}; --j)",
    }
    with body.block(heads[row.frame.choices.get("ties", "first")]):
        printer = row.printer(vector=False)
        body.line(f"const float x = {printer.value(a.reduce.arg)};")
        found = f"{a.name}_nan ? x != x : x == {a.name}" if nan else f"x == {a.name}"
        with body.block(f"if ({found})"):
            body.line(f"{a.name}_at = j;")
            body.line("break;")


def map_pass(row: Row, root: Node) -> None:
    """Write one output element for each element of the row."""
    row.hoist(root)
    body, choices = row.body, row.frame.choices

    def step(*, vector: bool, rest: str = "") -> None:
        tail = choices.get("tail", "scalar")
        how, extra = (f"load_{tail}", f", {rest}, 1.0f") if rest else ("load", "")
        row.frame.used |= {how} if rest else set()
        value = row.printer(vector=vector, how=how, rest=extra).value(root)
        _write(row, "j", value, vector=vector, rest=rest)

    if choices.get("simd", "none") != "vector" or row.general:
        if choices.get("simd", "none") == "pragma" and not row.general:
            body.line("#pragma omp simd")
        with body.block("for (int64_t j = 0; j < n; ++j)"):
            step(vector=False)
        return
    with body.block(""):
        body.line("int64_t j = 0;")
        with body.block("for (; j + kLanes <= n; j += kLanes)"):
            step(vector=True)
        if choices["tail"] == "scalar":
            with body.block("for (; j < n; ++j)"):
                step(vector=False)
        elif choices["tail"] in {"padded", "masked"}:
            with body.block("if (j < n)"):
                body.line("const int64_t rest = n - j;")
                step(vector=True, rest="rest")
