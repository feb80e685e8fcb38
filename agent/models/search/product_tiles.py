"""Matrix products by register tiles: a piece of the result stays in registers while k runs."""

# ruff: noqa: SIM117  (nested blocks look like the loops that they write)
from __future__ import annotations

from typing import TYPE_CHECKING

from agent.models.search.writer import Writer

if TYPE_CHECKING:
    from agent.models.search.emit_matmul import Product

_TILE = """
// R rows by V vectors of the product, kept in registers while k runs: each vector of b is used R times, each element of
// a V times. `first`: the sum begins here, else it is added to what y holds, so partial sums stay short.
template <int R, int V>
inline void tile(const float *@RESTRICT@a, int64_t a_i, const float *@RESTRICT@b, int64_t b_i, float *@RESTRICT@y,
                 int64_t y_i, int64_t k, bool first) {
  Vec sums[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) sums[r][v] = Vec{};
  }
  for (int64_t l = 0; l < k; ++l) {
    Vec row[V];
    for (int v = 0; v < V; ++v) row[v] = load(b + l * b_i + v * kLanes);
    for (int r = 0; r < R; ++r) {
      const Vec factor = wide(a[r * a_i + l]);
      for (int v = 0; v < V; ++v) sums[r][v] += factor * row[v];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      float *to = y + r * y_i + v * kLanes;
      store(to, first ? sums[r][v] : load(to) + sums[r][v]);
    }
  }
}

template <int V>
inline void tile_of(int64_t rows, const float *a, int64_t a_i, const float *b, int64_t b_i, float *y, int64_t y_i,
                    int64_t k, bool first) {
  int64_t r = 0;
  for (; r + kTileRows <= rows; r += kTileRows) {
    tile<kTileRows, V>(a + r * a_i, a_i, b, b_i, y + r * y_i, y_i, k, first);
  }
  for (; r < rows; ++r) tile<1, V>(a + r * a_i, a_i, b, b_i, y + r * y_i, y_i, k, first);
}
"""

_PANEL = """
// Columns [j, j + columns) of b as one panel, row after row, with zeros up to the tile's width.
void pack_panel(const float *b, int64_t b_i, int64_t k, int64_t columns, float *panel) {
  for (int64_t l = 0; l < k; ++l) {
    std::memcpy(panel + l * kTileColumns, b + l * b_i, columns * sizeof(float));
    std::fill(panel + l * kTileColumns + columns, panel + (l + 1) * kTileColumns, 0.0f);
  }
}
"""


def tiled(product: Product) -> tuple[Writer, str]:
    """Write the tile functions; return how tiles become tasks, and a note."""
    frame, body = product.frame, product.frame.body
    tile_rows, tile_vectors = frame.choices["register_tile"].split("x")
    body.line(f"constexpr int kTileRows = {tile_rows}, kTileVectors = {tile_vectors};")
    body.line("constexpr int64_t kTileColumns = kTileVectors * kLanes;")
    body.line("constexpr int64_t kTaskRows = 8 * kTileRows;")
    body.text(_TILE.replace("@RESTRICT@", frame.restrict))
    body.text(_PANEL)
    body.line()
    _piece(product)
    return _tasks(product), f"Register tiles of {tile_rows} rows by {tile_vectors} vectors."


def _piece(product: Product) -> None:
    """`piece`: some rows of one panel's width, over all of k."""
    body, choices = product.frame.body, product.frame.choices
    block = choices.get("tile_k", "none")
    body.line("// Some rows of one panel's width. `b` is the panel (or b itself, from the panel's first column).")
    head = (
        "void piece(const float *a, int64_t a_i, const float *b, int64_t b_i, float *y, int64_t y_i, int64_t rows, "
        "int64_t k)"
    )
    with body.block(head):
        if block == "none":
            body.line("tile_of<kTileVectors>(rows, a, a_i, b, b_i, y, y_i, k, true);")
        else:
            with body.block(f"for (int64_t from = 0; from < k; from += {block})"):
                body.line(f"const int64_t depth = std::min<int64_t>({block}, k - from);")
                body.line("tile_of<kTileVectors>(rows, a + from, a_i, b + from * b_i, b_i, y, y_i, depth, from == 0);")
            body.line("if (k == 0) tile_of<kTileVectors>(rows, a, a_i, b, b_i, y, y_i, 0, true);")


def _tasks(product: Product) -> Writer:  # noqa: PLR0915  (one function of the kernel, written from top to bottom)
    frame, choices = product.frame, product.frame.choices
    tail, packed = choices["tail"], choices.get("packing") == "panels"
    tasks = Writer()
    whole = "n / kTileColumns" if tail in {"scalar", "ignored"} else "(n + kTileColumns - 1) / kTileColumns"
    tasks.line(f"const int64_t panels = {whole}, strips = (m + kTaskRows - 1) / kTaskRows;")
    if packed:
        tasks.line("std::vector<float> packed(panels * kTileColumns * k);")
        if frame.threaded():
            tasks.line("#pragma omp parallel for schedule(static)")
        with tasks.block("for (int64_t panel = 0; panel < panels; ++panel)"):
            tasks.line("const int64_t j = panel * kTileColumns, columns = std::min(kTileColumns, n - j);")
            tasks.line("pack_panel(b + j, b_i, k, columns, packed.data() + panel * kTileColumns * k);")
    with tasks.block("const auto work = [&](int64_t begin, int64_t end)", "};"):
        tasks.line("std::vector<float> result, edge;")
        with tasks.block("for (int64_t task = begin; task < end; ++task)"):
            tasks.line("// Tasks run through the strips of one panel, so the panel stays in cache.")
            tasks.line("const int64_t j = task / strips * kTileColumns, columns = std::min(kTileColumns, n - j);")
            tasks.line("const int64_t low = task % strips * kTaskRows, rows = std::min(kTaskRows, m - low);")
            tasks.line("float *target = y + low * y_i + j * y_j;")
            if packed:
                tasks.line("const float *panel = packed.data() + task / strips * kTileColumns * k;")
                tasks.line("const int64_t panel_i = kTileColumns;")
            else:
                tasks.line("const float *panel = b + j;")
                tasks.line("int64_t panel_i = b_i;")
                if tail not in {"scalar", "ignored"}:
                    with tasks.block("if (columns < kTileColumns)"):
                        tasks.line("edge.resize(k * kTileColumns);")
                        tasks.line("pack_panel(panel, b_i, k, columns, edge.data());")
                        tasks.line("panel = edge.data();")
                        tasks.line("panel_i = kTileColumns;")
            with tasks.block("if (columns == kTileColumns && y_j == 1)"):
                tasks.line("piece(a + low * a_i, a_i, panel, panel_i, target, y_i, rows, k);")
            with tasks.block("else"):
                tasks.line("result.resize(kTaskRows * kTileColumns);")
                tasks.line("piece(a + low * a_i, a_i, panel, panel_i, result.data(), kTileColumns, rows, k);")
                with tasks.block("for (int64_t i = 0; i < rows; ++i)"):
                    tasks.line("for (int64_t c = 0; c < columns; ++c) "
                               "target[i * y_i + c * y_j] = result[i * kTileColumns + c];")  # fmt: skip
            if product.has_epilogue and choices.get("epilogue") == "fused":
                _finish_piece(product, tasks)
    if tail == "scalar":
        tasks.line("// The columns that fill no tile.")
        if frame.threaded():
            tasks.line("#pragma omp parallel for schedule(static)")
        with tasks.block("for (int64_t i = 0; i < m; ++i)"):
            with tasks.block("for (int64_t j = panels * kTileColumns; j < n; ++j)"):
                tasks.line("float sum = 0.0f;")
                tasks.line("for (int64_t l = 0; l < k; ++l) sum += a[i * a_i + l] * b[l * b_i + j];")
                value = product.finish("sum", "i", "j") if choices.get("epilogue") == "fused" else "sum"
                tasks.line(f"y[i * y_i + j * y_j] = {value};")
    tasks.line("const int64_t tasks = panels * strips;")
    return tasks


def _finish_piece(product: Product, tasks: Writer) -> None:
    tasks.line("// Bias and activation while the piece is still in cache.")
    with tasks.block("for (int64_t i = low; i < low + rows; ++i)"):
        if product.frame.choices.get("simd") == "vector":
            tasks.line("#pragma omp simd")
        with tasks.block("for (int64_t c = j; c < j + columns; ++c)"):
            tasks.line(f"y[i * y_i + c * y_j] = {product.finish('y[i * y_i + c * y_j]', 'i', 'c')};")
