"""Composes kernels over rows: any tree of reductions along the last axis and pointwise functions of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.models.search import rows
from agent.models.search.accumulate import Accumulator
from agent.models.search.ir import Apply, Node, Program, Reduce, children, per_row, walk
from agent.models.search.kernel import Frame
from agent.models.search.passes import Row, map_pass, reduce_pass
from agent.models.search.threads import write_threads
from agent.models.search.writer import Writer

_ONLINE_BLOCK = 256
_NAMES: Mapping[str, str] = {
    "sum": "sum",
    "prod": "product",
    "max": "top",
    "min": "low",
    "argmax": "best",
    "argmin": "best",
}

_ROWS = """
// Every view stretched to one shape, whose last axis is the row.
struct Rows {
  int64_t ndim;  // axes before the last
  int64_t shape[kMaxDims];
  int64_t count, length;
};

Rows rows_over(std::initializer_list<View> views) {
  Rows rows{0, {}, 1, 1};
  for (const View &v : views) rows.ndim = std::max(rows.ndim, v.ndim - 1);
  std::fill(rows.shape, rows.shape + kMaxDims, 1);
  for (const View &v : views) {
    for (int64_t d = 0; d + 1 < v.ndim; ++d) {
      int64_t &size = rows.shape[rows.ndim - (v.ndim - 1) + d];
      size = std::max(size, v.shape[d]);
    }
    if (v.ndim > 0) rows.length = std::max(rows.length, v.shape[v.ndim - 1]);
  }
  for (int64_t d = 0; d < rows.ndim; ++d) rows.count *= rows.shape[d];
  return rows;
}

// Where row `row` of a view begins; axes that are missing or of size 1 do not move.
int64_t row_start(const View &v, const Rows &rows, int64_t row) {
  int64_t offset = 0;
  for (int64_t d = rows.ndim - 1; d >= 0; row /= rows.shape[d--]) {
    const int64_t at = d - (rows.ndim - (v.ndim - 1));
    if (at >= 0 && v.shape[at] != 1) offset += row % rows.shape[d] * v.stride[at];
  }
  return offset;
}

// The step from one element of a row to the next: 0 where the view is stretched along it.
int64_t step_of(const View &v, const Rows &rows) {
  if (v.ndim == 0 || (v.shape[v.ndim - 1] == 1 && rows.length != 1)) return 0;
  return v.stride[v.ndim - 1];
}
"""

_PLACE = """
// Where the result of row `row` goes: rows are counted in the order of the output's elements.
int64_t place_of(const View &out, int64_t row) {
  int64_t offset = 0;
  for (int64_t d = out.ndim - 1; d >= 0; row /= out.shape[d--]) offset += row % out.shape[d] * out.stride[d];
  return offset;
}
"""

_TOGETHER = """
// A row with stride 1: as it lies, or copied together.
const float *together(const float *p, int64_t step, int64_t n, float *buffer) {
  if (step == 1 || n == 1) return p;
  for (int64_t j = 0; j < n; ++j) buffer[j] = p[j * step];
  return buffer;
}
"""


def emit(program: Program, choices: Mapping[str, str]) -> str:
    """The kernel's source."""
    frame = Frame(program, rows.lower(program.root, choices), choices)
    if any(isinstance(node, Reduce) and node.kind.startswith("arg") for node in walk(frame.root)):
        frame.output_dtype = "SB_INT64"
    function = Writer()
    row = Row(frame, function)
    _row_function(row)
    frame.body.text(_ROWS)
    if per_row(frame.root):
        frame.body.text(_PLACE)
    if choices["layout"] == "fast_path":
        frame.body.text(_TOGETHER)
    arguments = [node for node in walk(frame.root) if isinstance(node, Reduce) and node.kind.startswith("arg")]
    if arguments:
        frame.body.text(Accumulator(arguments[0], "best", choices).merge_function())
        if frame.vector:
            frame.body.text(_LANE_INDEX)
    frame.body.line()
    frame.body.text(str(function))
    return frame.source(_entry(frame), _note(frame))


_LANE_INDEX = """
// 0, 1, 2, …: the place of each lane within its vector.
inline IntVec count_lanes() {
  IntVec v;
  for (int lane = 0; lane < kLanes; ++lane) v[lane] = lane;
  return v;
}
"""


def _note(frame: Frame) -> str:
    levels = len(_levels(frame.root)) + (not per_row(frame.root))
    return f"{levels} pass{'es' if levels > 1 else ''} over each row."


def _levels(root: Node) -> list[list[Reduce]]:
    """The reductions by the pass in which they can be computed: after those that they depend on."""
    depth: dict[Node, int] = {}
    for node in walk(root):
        below = max((depth[child] for child in children(node)), default=0)
        depth[node] = below + (1 if isinstance(node, Reduce) else 0)
    found = [node for node in walk(root) if isinstance(node, Reduce)]
    return [[node for node in found if depth[node] == level] for level in range(1, max(map(depth.get, found)) + 1)]  # type: ignore[type-var, operator]  # every node has a depth


def _row_function(row: Row) -> None:
    frame, body = row.frame, row.body
    general = row.general
    pointers = ", ".join(
        f"const float *{frame.restrict}x{slot}{f', int64_t s{slot}' if general else ''}"
        for slot in range(len(frame.inputs))
    )
    out = "int64_t *y" if frame.output_dtype == "SB_INT64" else f"float *{frame.restrict}y"
    out += ", int64_t sy" if general and not per_row(frame.root) else ""
    with body.block(f"void one_row({pointers}, {out}, int64_t n{frame.attribute_parameters()})"):
        if frame.vector and any(isinstance(node, Reduce) and node.kind.startswith("arg") for node in walk(frame.root)):
            body.line("const IntVec lane_index = count_lanes();")
        _passes(row)
        if per_row(frame.root):
            value = row.row_value(frame.root)
            body.line(f"*y = {f'static_cast<float>({value})' if frame.output_dtype == 'SB_FLOAT32' else value};")
        else:
            map_pass(row, frame.root)


def _passes(row: Row) -> None:
    frame, root = row.frame, row.frame.root
    counts: dict[str, int] = {}
    store = _reused(root) if frame.choices.get("exp_reuse") == "store" else None
    levels = _levels(root)
    skip: set[Reduce] = set()
    for level in levels:
        accumulators = []
        for reduce in (reduce for reduce in level if reduce not in skip):
            base = _NAMES[reduce.kind]
            counts[base] = counts.get(base, 0) + 1
            name = base if counts[base] == 1 else f"{base}_{'abcdefgh'[counts[base] - 1]}"
            accumulators.append(Accumulator(reduce, name, frame.choices))
        online = [a for a in accumulators if frame.choices.get("softmax_shift") == "online" and _pair(a.reduce, levels)]
        for top in online:
            total = _pair(top.reduce, levels)
            if total is not None:
                counts["sum"] = counts.get("sum", 0) + 1
                name = "sum" if counts["sum"] == 1 else f"sum_{'abcdefgh'[counts['sum'] - 1]}"
                _online(row, top, Accumulator(total, name, frame.choices))
                skip.add(total)
        plain = [a for a in accumulators if a not in online]
        if plain:
            here = store if store is not None and any(store in walk(a.reduce.arg) for a in plain) else None
            reduce_pass(row, plain, "0", "n", here)
            row.stored = here if here is not None else row.stored
        for a in plain:
            row.named[a.reduce] = f"{a.name}_at" if a.is_argument else a.name


def _reused(root: Node) -> Node | None:
    """The exponential that both a sum and the result need."""
    in_result: list[Node] = []

    def visit(node: Node) -> None:
        if isinstance(node, Reduce):
            return
        if isinstance(node, Apply) and node.op == "exp" and not per_row(node):
            in_result.append(node)
        for child in children(node):
            visit(child)

    visit(root)
    sums = [node for node in walk(root) if isinstance(node, Reduce) and node.kind == "sum"]
    return next((e for e in in_result if any(e in set(walk(total.arg)) for total in sums)), None)


def _pair(top: Reduce, levels: Sequence[Sequence[Reduce]]) -> Reduce | None:
    """The sum of exp(x - shift) whose shift comes from the maximum `top` of x alone, else None."""
    if top.kind != "max":
        return None
    for reduce in (reduce for level in levels for reduce in level):
        match reduce:
            case Reduce("sum", Apply("exp", (Apply("sub", (x, shift)),))) if x == top.arg and top in set(walk(shift)):
                return reduce
            case _:
                continue
    return None


def _online(row: Row, top: Accumulator, total: Accumulator) -> None:
    """Maximum and sum in one pass over memory: when a block raises the maximum, the sum so far is scaled down to it."""
    body = row.body
    exponent = total.reduce.arg
    if not (isinstance(exponent, Apply) and isinstance(exponent.args[0], Apply)):
        raise AssertionError(f"{total.reduce} is no sum of shifted exponentials")  # noqa: TRY004  (a broken promise)
    shift = exponent.args[0].args[1]
    body.line("// The maximum starts at the lowest number rather than minus infinity: inf - inf would be not-a-number.")
    body.line(f"float {top.name} = -3.4028235e38f;")
    total.declare(body, total.name, vector=False, joins=False)
    with body.block(f"for (int64_t from = 0; from < n; from += {_ONLINE_BLOCK})"):
        body.line(f"const int64_t to = std::min(n, from + int64_t{{{_ONLINE_BLOCK}}});")
        part = Accumulator(top.reduce, f"block_{top.name}", top.choices)
        reduce_pass(row, [part], "from", "to")
        before = dict(row.named)
        row.named[top.reduce] = top.name
        old = row.row_value(shift)
        body.line(f"const float old_shift = {old};")
        top.join(body, top.name, part.name, vector=False)
        body.line(f"const float shift = {old};")
        body.line(f"{total.name} *= std::exp(old_shift - shift);")
        row.named[shift] = "shift"
        inner = Accumulator(total.reduce, f"block_{total.name}", total.choices)
        reduce_pass(row, [inner], "from", "to")
        body.line(f"{total.name} += {inner.name};")
        row.named = before
    row.named[top.reduce] = top.name
    row.named[total.reduce] = total.name


def _entry(frame: Frame) -> Writer:
    entry, choices = Writer(), frame.choices
    entry.lines(frame.view_lines())
    entry.line(f"const Rows rows = rows_over({{{', '.join(f'v{slot}' for slot in range(len(frame.inputs)))}}});")
    entry.line("const int64_t n = rows.length;")
    packs = choices["layout"] == "fast_path"
    maps = not per_row(frame.root)
    for slot in range(len(frame.inputs)):
        if choices["layout"] != "assume_contiguous":
            entry.line(f"const int64_t s{slot} = step_of(v{slot}, rows);")
    if maps and choices["layout"] != "assume_contiguous":
        entry.line("const int64_t sy = step_of(out, rows);")
    with entry.block("const auto work = [&](int64_t begin, int64_t end)", "};"):
        if packs:
            entry.line("static thread_local std::vector<float> scratch;")
            entry.line(f"if (scratch.size() < static_cast<size_t>({len(frame.inputs) + maps} * n)) "
                       f"scratch.resize({len(frame.inputs) + maps} * n);")  # fmt: skip
        with entry.block("for (int64_t row = begin; row < end; ++row)"):
            _one_call(entry, frame, packs=packs, maps=maps)
    write_threads(entry, frame, "rows.count", "rows.count * n")
    return entry


def _one_call(entry: Writer, frame: Frame, *, packs: bool, maps: bool) -> None:
    general = frame.choices["layout"] == "general"
    arguments = []
    for slot in range(len(frame.inputs)):
        start = f"v{slot}.data + row_start(v{slot}, rows, row)"
        if packs:
            entry.line(f"const float *x{slot} = together({start}, s{slot}, n, scratch.data() + {slot} * n);")
            arguments.append(f"x{slot}")
        else:
            arguments.append(start + (f", s{slot}" if general else ""))
    if not maps:
        kind = "int64_t" if frame.output_dtype == "SB_INT64" else "float"
        base = "static_cast<int64_t *>(outputs[0].data)" if kind == "int64_t" else "out.data"
        arguments.append(f"{base} + place_of(out, row)")
    elif packs:
        entry.line("float *target = out.data + row_start(out, rows, row);")
        entry.line(f"float *y = sy == 1 ? target : scratch.data() + {len(frame.inputs)} * n;")
        arguments.append("y")
    else:
        arguments.append("out.data + row_start(out, rows, row)" + (", sy" if general else ""))
    entry.line(f"one_row({', '.join(arguments)}, n{frame.attribute_arguments()});")
    if maps and packs:
        entry.line("for (int64_t j = 0; sy != 1 && j < n; ++j) target[j * sy] = y[j];")
