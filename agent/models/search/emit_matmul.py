"""Composes matrix products, with any pointwise tree of the product (bias, activation) as an epilogue."""

# ruff: noqa: SIM117  (nested blocks look like the loops that they write)
from __future__ import annotations

from collections.abc import Mapping

from agent.models.search import rows
from agent.models.search.errors import NoRecipe
from agent.models.search.expression import Printer
from agent.models.search.ir import Input, Length, MatMul, Node, Program, children, walk
from agent.models.search.kernel import Frame
from agent.models.search.product_loops import plain_loops
from agent.models.search.product_tiles import tiled
from agent.models.search.threads import write_threads
from agent.models.search.writer import Writer

BATCHES = """
// Where batch `batch` of a tensor begins: axes before the last two, stretched to those of the output.
int64_t batch_start(const View &v, const View &out, int64_t batch) {
  int64_t offset = 0;
  for (int64_t d = out.ndim - 3; d >= 0; batch /= out.shape[d--]) {
    const int64_t at = d - (out.ndim - v.ndim);
    if (at >= 0 && v.shape[at] != 1) offset += batch % out.shape[d] * v.stride[at];
  }
  return offset;
}

// The step along one of the last two axes (-2: rows, -1: columns): 0 where the tensor lacks it or is stretched.
int64_t step_of(const View &v, int64_t axis, const View &out) {
  const int64_t at = v.ndim + axis;
  if (at < 0 || (v.shape[at] == 1 && out.shape[out.ndim + axis] != 1)) return 0;
  return v.stride[at];
}
"""

DENSE_COPY = """
// A matrix with its columns next to each other: as it lies, or copied.
const float *dense_columns(const float *p, int64_t rows, int64_t columns, int64_t &row_step, int64_t column_step,
                           std::vector<float> &copy) {
  if (column_step == 1 || columns == 1) return p;
  copy.resize(rows * columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) copy[i * columns + j] = p[i * row_step + j * column_step];
  }
  row_step = columns;
  return copy.data();
}
"""


class Product:
    """The parts of a product kernel: the factors, and the function that finishes an element."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        products = [node for node in walk(frame.root) if isinstance(node, MatMul)]
        if len(products) != 1:
            raise NoRecipe(frame.program.name, f"{len(products)} matrix products in one kernel")
        product = products[0]
        if not (isinstance(product.left, Input) and isinstance(product.right, Input)):
            raise NoRecipe(frame.program.name, "a matrix product of something other than two inputs")
        self.product: Node = product
        self.left, self.right = frame.slot(product.left), frame.slot(product.right)
        outside = {node for node in _outside(frame.root, product) if isinstance(node, Input)}
        self.extra = [slot for slot, at in enumerate(frame.inputs) if at in outside]
        if any(isinstance(node, Length) for node in _outside(frame.root, product)):
            raise NoRecipe(frame.program.name, "the length of an axis in an epilogue")
        self.has_epilogue = frame.root != product

    @property
    def unit(self) -> bool:
        """Whether columns are known to lie next to each other."""
        return self.frame.choices["layout"] != "general"

    def extra_parameters(self) -> str:
        """Pointers and steps of the epilogue's own inputs, then the attributes."""
        pointers = "".join(f", const float *x{slot}, int64_t x{slot}_i, int64_t x{slot}_j" for slot in self.extra)
        return pointers + self.frame.attribute_parameters()

    def extra_arguments(self) -> str:
        """What `extra_parameters` are called with."""
        pointers = "".join(f", x{slot}, x{slot}_i, x{slot}_j" for slot in self.extra)
        return pointers + self.frame.attribute_arguments()

    def finish_function(self) -> None:
        """`finish`: the epilogue of one element, as a function of the sum and of the other inputs there."""
        body = self.frame.body
        parameters = (
            "float sum" + "".join(f", float x{slot}" for slot in self.extra) + self.frame.attribute_parameters()
        )
        with body.block(f"inline float finish({parameters})"):
            named: dict[Node, str] = {self.product: "sum"}
            named |= {self.frame.inputs[slot]: f"x{slot}" for slot in self.extra}
            printer = Printer(
                vector=False,
                load=lambda at: f"x{self.frame.slot(at)}",
                named=named,
                length=lambda _: "0.0f",
                choices=self.frame.choices,
                emit=body.line,
                used=self.frame.used,
            )
            body.line(f"return {printer.value(self.frame.root)};")
        body.line()

    def finish(self, value: str, i: str, j: str) -> str:
        """`value` with the epilogue applied, at row i and column j."""
        if not self.has_epilogue:
            return value
        loads = "".join(f", x{slot}[{_times(i)} * x{slot}_i + {_times(j)} * x{slot}_j]" for slot in self.extra)
        return f"finish({value}{loads}{self.frame.attribute_arguments()})"


def _times(index: str) -> str:
    return f"({index})" if " " in index else index


def _outside(root: Node, product: Node) -> list[Node]:
    """The nodes above the product and beside it."""
    found: list[Node] = []

    def visit(node: Node) -> None:
        if node == product:
            return
        found.append(node)
        for child in children(node):
            visit(child)

    visit(root)
    return found


def emit(program: Program, choices: Mapping[str, str]) -> str:
    """The kernel's source. The tree must hold exactly one product, of two inputs."""
    frame = Frame(program, rows.lower(program.root, choices), choices)
    product = Product(frame)
    tiles = choices.get("register_tile", "none") != "none"
    frame.body.text(BATCHES)
    if choices["layout"] == "fast_path":
        frame.body.text(DENSE_COPY)
    frame.body.line()
    if product.has_epilogue:
        product.finish_function()
    if tiles:
        tasks, note = tiled(product)
    else:
        tasks, note = plain_loops(product)
    return frame.source(_entry(product, tasks), note)


def tiles_separate(choices: Mapping[str, str]) -> bool:
    """Whether register tiles leave the epilogue to a pass of its own (plain loops do it in their function)."""
    return choices.get("register_tile", "none") != "none" and choices.get("epilogue") == "separate"


def _entry(product: Product, tasks: Writer) -> Writer:
    frame, entry = product.frame, Writer()
    entry.lines(frame.view_lines())
    left, right = product.left, product.right
    entry.line(f"if (v{left}.ndim < 2 || v{right}.ndim < 2 || out.ndim < 2) return 3;")
    entry.line(f"const int64_t m = v{left}.shape[v{left}.ndim - 2], k = v{left}.shape[v{left}.ndim - 1];")
    entry.line(f"const int64_t n = v{right}.shape[v{right}.ndim - 1];")
    entry.line("int64_t batches = 1;")
    entry.line("for (int64_t d = 0; d < out.ndim - 2; ++d) batches *= out.shape[d];")
    entry.line("const int64_t y_i = out.stride[out.ndim - 2], y_j = out.stride[out.ndim - 1];")
    for slot in product.extra:
        entry.line(f"const int64_t x{slot}_i = step_of(v{slot}, -2, out), x{slot}_j = step_of(v{slot}, -1, out);")
    with entry.block("for (int64_t batch = 0; batch < batches; ++batch)"):
        for name, slot in (("a", left), ("b", right)):
            entry.line(f"const float *{name} = v{slot}.data + batch_start(v{slot}, out, batch);")
            step = "" if frame.choices["layout"] == "fast_path" else "const "
            entry.line(f"{step}int64_t {name}_i = v{slot}.stride[v{slot}.ndim - 2];")
            if frame.choices["layout"] != "assume_contiguous":
                entry.line(f"const int64_t {name}_j = v{slot}.stride[v{slot}.ndim - 1];")
        if frame.choices["layout"] == "fast_path":
            entry.line("std::vector<float> a_copy, b_copy;")
            entry.line("a = dense_columns(a, m, k, a_i, a_j, a_copy);")
            entry.line("b = dense_columns(b, k, n, b_i, b_j, b_copy);")
        entry.line("float *y = out.data + batch_start(out, out, batch);")
        for slot in product.extra:
            entry.line(f"const float *x{slot} = v{slot}.data + batch_start(v{slot}, out, batch);")
        entry.text(str(tasks))
        write_threads(entry, frame, "tasks", "m * n * k / 16")
        if product.has_epilogue and tiles_separate(frame.choices):
            if frame.threaded():
                entry.line("#pragma omp parallel for schedule(static)")
            with entry.block("for (int64_t i = 0; i < m; ++i)"):
                with entry.block("for (int64_t j = 0; j < n; ++j)"):
                    entry.line(f"y[i * y_i + j * y_j] = {product.finish('y[i * y_i + j * y_j]', 'i', 'j')};")
    return entry
