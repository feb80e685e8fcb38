"""Matrix products as plain loops: by dot products (ijk) or by rows of the second factor (ikj)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.models.search.accumulate import Accumulator
from agent.models.search.ir import Reduce
from agent.models.search.passes import BLOCK
from agent.models.search.writer import Writer

if TYPE_CHECKING:
    from agent.models.search.emit_matmul import Product

_ROWS = 16


def plain_loops(product: Product) -> tuple[Writer, str]:
    """Write the function that computes some rows; return how rows become tasks, and a note."""
    choices = product.frame.choices
    steps = "" if product.unit else ", int64_t a_j", "" if product.unit else ", int64_t b_j"
    restrict = product.frame.restrict
    head = (
        f"void some_rows(const float *{restrict}a, int64_t a_i{steps[0]}, "
        f"const float *{restrict}b, int64_t b_i{steps[1]}, float *{restrict}y, int64_t y_i, int64_t y_j, "
        "int64_t low, int64_t high, int64_t n, int64_t k"
        f"{product.extra_parameters()})"
    )
    body = product.frame.body
    body.line("// Rows [low, high) of the product.")
    with body.block(head):
        if choices["loop_order"] == "ijk":
            _dot_products(product)
        else:
            _row_updates(product)
    tasks = Writer()
    tasks.line(f"constexpr int64_t kRows = {_ROWS};  // rows that one task computes, so that they share what they load")
    tasks.line("const int64_t tasks = (m + kRows - 1) / kRows;")
    steps = "" if product.unit else ", a_j", "" if product.unit else ", b_j"
    with tasks.block("const auto work = [&](int64_t begin, int64_t end)", "};"):
        tasks.line("const int64_t low = begin * kRows, high = std::min(m, end * kRows);")
        tasks.line(
            f"some_rows(a, a_i{steps[0]}, b, b_i{steps[1]}, y, y_i, y_j, low, high, n, k{product.extra_arguments()});"
        )
    order = "each element is one sum along k" if choices["loop_order"] == "ijk" else "rows of b are added up"
    return tasks, f"Plain loops: {order}."


def _a(product: Product, i: str, at: str) -> str:
    return f"a[{i} * a_i + {at}]" if product.unit else f"a[{i} * a_i + {at} * a_j]"


def _b(product: Product, at: str, j: str) -> str:
    return f"b[{at} * b_i + {j}]" if product.unit else f"b[{at} * b_i + {j} * b_j]"


def _fused(product: Product) -> bool:
    return product.has_epilogue and product.frame.choices.get("epilogue") == "fused"


def _epilogue_pass(product: Product) -> None:
    if product.has_epilogue and not _fused(product):
        body = product.frame.body
        with body.block("for (int64_t i = low; i < high; ++i)"), body.block("for (int64_t j = 0; j < n; ++j)"):
            body.line(f"y[i * y_i + j * y_j] = {product.finish('y[i * y_i + j * y_j]', 'i', 'j')};")


def _dot_products(product: Product) -> None:
    body, frame = product.frame.body, product.frame
    with body.block("for (int64_t i = low; i < high; ++i)"):
        if frame.vector:
            _dot_vectors(product)
        else:
            with body.block("for (int64_t j = 0; j < n; ++j)"):
                _dot(product)
    _epilogue_pass(product)


def _store(product: Product, value: str) -> None:
    value = product.finish(value, "i", "j") if _fused(product) else value
    product.frame.body.line(f"y[i * y_i + j * y_j] = {value};")


def _dot(product: Product) -> None:
    body, choices = product.frame.body, product.frame.choices
    accumulator = Accumulator(Reduce("sum", product.product), "sum", choices)
    term = f"{_a(product, 'i', 'l')} * {_b(product, 'l', 'j')}"
    pragma = choices.get("simd") == "pragma"
    if choices.get("accumulator") == "blocked":
        body.line(f"float sum = 0.0f;  // sums of {BLOCK} products: the error grows with the block, not with k")
        with body.block(f"for (int64_t from = 0; from < k; from += {BLOCK})"):
            body.line("float part = 0.0f;")
            if pragma:
                body.line("#pragma omp simd reduction(+ : part)")
            body.line(f"for (int64_t l = from; l < std::min<int64_t>(k, from + {BLOCK}); ++l) part += {term};")
            body.line("sum += part;")
    else:
        accumulator.declare(body, "sum", vector=False)
        if pragma:
            body.line("#pragma omp simd reduction(+ : sum)")
        with body.block("for (int64_t l = 0; l < k; ++l)"):
            accumulator.join(body, "sum", term, vector=False)
    _store(product, "static_cast<float>(sum)" if accumulator.wide else "sum")


def _dot_vectors(product: Product) -> None:
    """One vector of neighbouring elements at a time: each lane is the sum of its own column."""
    body, frame = product.frame.body, product.frame
    tail = frame.choices["tail"]
    accumulator = Accumulator(Reduce("sum", product.product), "sums", frame.choices)
    frame.used |= {"to_double"} if accumulator.wide else set()

    def columns(load: str, rest: str) -> None:
        accumulator.declare(body, "sums", vector=True)
        term = f"{_a(product, 'i', 'l')} * {load}(b + l * b_i + j{rest})"
        if frame.choices.get("accumulator") == "blocked":
            with body.block(f"for (int64_t from = 0; from < k; from += {BLOCK})"):
                body.line("Vec part = {};")
                body.line(f"for (int64_t l = from; l < std::min<int64_t>(k, from + {BLOCK}); ++l) part += {term};")
                body.line("sums += part;")
        else:
            with body.block("for (int64_t l = 0; l < k; ++l)"):
                accumulator.join(body, "sums", term, vector=True)
        limit = "rest" if rest else "kLanes"
        with body.block(f"for (int64_t lane = 0; lane < {limit}; ++lane)"):
            value = "static_cast<float>(sums[lane])" if accumulator.wide else "sums[lane]"
            done = product.finish(value, "i", "j + lane") if _fused(product) else value
            body.line(f"y[i * y_i + (j + lane) * y_j] = {done};")

    body.line("int64_t j = 0;")
    with body.block("for (; j + kLanes <= n; j += kLanes)"):
        columns("load", "")
    if tail == "scalar":
        with body.block("for (; j < n; ++j)"):
            _dot(product)
    elif tail in {"padded", "masked"}:
        frame.used.add(f"load_{tail}")
        with body.block("if (j < n)"):
            body.line("const int64_t rest = n - j;")
            columns(f"load_{tail}", ", rest, 0.0f")


def _row_updates(product: Product) -> None:
    body, choices = product.frame.body, product.frame.choices
    block = choices.get("tile_k", "none")
    with body.block("for (int64_t i = low; i < high; ++i)"):
        body.line("for (int64_t j = 0; j < n; ++j) y[i * y_i + j * y_j] = 0.0f;")
    if block != "none":
        body.line(f"// A block of {block} rows of b stays in cache while every row of this task takes it; it is summed")
        body.line("// on its own first, which keeps more digits of a long sum.")
        body.line("std::vector<float> part(n);")
        with body.block(f"for (int64_t from = 0; from < k; from += {block})"):
            body.line(f"const int64_t to = std::min<int64_t>(k, from + {block});")
            with body.block("for (int64_t i = low; i < high; ++i)"):
                body.line("std::fill(part.begin(), part.end(), 0.0f);")
                body.line("float *sums = part.data();")
                _update(product, "from", "to", step="1")
                body.line("for (int64_t j = 0; j < n; ++j) y[i * y_i + j * y_j] += sums[j];")
    else:
        with body.block("for (int64_t i = low; i < high; ++i)"):
            body.line("float *sums = y + i * y_i;")
            _update(product, "0", "k", step="y_j")
    _epilogue_pass(product)
    if _fused(product):
        with body.block("for (int64_t i = low; i < high; ++i)"):
            done = product.finish("y[i * y_i + j * y_j]", "i", "j")
            body.line(f"for (int64_t j = 0; j < n; ++j) y[i * y_i + j * y_j] = {done};")


def _update(product: Product, low: str, high: str, *, step: str) -> None:
    """Add multiples of rows [low, high) of b to `sums`, whose elements lie `step` apart."""
    body, frame = product.frame.body, product.frame
    target = "sums[j]" if step == "1" else f"sums[j * {step}]"
    with body.block(f"for (int64_t l = {low}; l < {high}; ++l)"):
        body.line(f"const float factor = {_a(product, 'i', 'l')};")
        if not product.unit:
            body.line(f"for (int64_t j = 0; j < n; ++j) {target} += factor * {_b(product, 'l', 'j')};")
            return
        body.line("const float *row = b + l * b_i;")
        if not frame.vector:
            if frame.choices.get("simd") == "pragma":
                body.line("#pragma omp simd")
            body.line(f"for (int64_t j = 0; j < n; ++j) {target} += factor * row[j];")
            return
        tail = frame.choices["tail"]
        body.line("int64_t j = 0;")
        with body.block("" if step == "1" else f"if ({step} == 1)"):
            body.line("for (; j + kLanes <= n; j += kLanes) store(sums + j, load(sums + j) + factor * load(row + j));")
            if tail in {"padded", "masked"}:
                frame.used |= {f"load_{tail}", "store_part"}
                with body.block("if (j < n)"):
                    body.line("const int64_t rest = n - j;")
                    part = f"load_{tail}(sums + j, rest, 0.0f) + factor * load_{tail}(row + j, rest, 0.0f)"
                    body.line(f"store_part(sums + j, {part}, rest);")
                    body.line("j = n;")
        if tail == "ignored" and step != "1":
            body.line(f"for (; {step} != 1 && j < n; ++j) {target} += factor * row[j];")
        elif tail != "ignored":
            body.line(f"for (; j < n; ++j) {target} += factor * row[j];")
