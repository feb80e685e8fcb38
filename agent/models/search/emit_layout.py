"""Composes copies that change the order of axes."""

# ruff: noqa: SIM117  (nested blocks look like the loops that they write)
from __future__ import annotations

from collections.abc import Mapping

from agent.models.search.ir import Program
from agent.models.search.kernel import Frame
from agent.models.search.threads import write_threads
from agent.models.search.writer import Writer

_PLANES = """
// The copy as planes: axis `a`, along which the input lies densest, against the output's last axis; the other axes are
// walked outside.
struct Planes {
  int64_t ndim;
  int64_t shape[kMaxDims], from[kMaxDims], to[kMaxDims];
  int64_t count;
  int64_t rows, columns, from_row, from_column, to_row, to_column;
};

Planes planes_over(const View &in, const View &out) {
  const int64_t last = out.ndim - 1;
  int64_t a = std::max<int64_t>(last - 1, 0);
  for (int64_t d = 0; d < last; ++d) {
    if (out.shape[d] > 1 && in.stride[d] < in.stride[a]) a = d;
  }
  Planes p{};
  p.count = 1;
  for (int64_t d = 0; d < last; ++d) {
    if (d == a) continue;
    p.shape[p.ndim] = out.shape[d];
    p.from[p.ndim] = in.stride[d];
    p.to[p.ndim++] = out.stride[d];
    p.count *= out.shape[d];
  }
  const bool has_rows = out.ndim > 1;
  p.rows = has_rows ? out.shape[a] : 1;
  p.from_row = has_rows ? in.stride[a] : 0;
  p.to_row = has_rows ? out.stride[a] : 0;
  p.columns = out.ndim > 0 ? out.shape[last] : 1;
  p.from_column = out.ndim > 0 ? in.stride[last] : 0;
  p.to_column = out.ndim > 0 ? out.stride[last] : 0;
  return p;
}
"""

_TURN = """
typedef float Vec8 __attribute__((vector_size(32)));
typedef int32_t Mask8 __attribute__((vector_size(32)));

// An 8 x 8 tile turned in registers: 24 shuffles instead of 64 strided accesses. `from` holds rows of 8 neighbours a
// stride apart, `to` gets columns.
inline void turn_8x8(const float *from, int64_t from_step, float *to, int64_t to_step) {
  Vec8 r[8], t[8];
  for (int k = 0; k < 8; ++k) std::memcpy(&r[k], from + k * from_step, sizeof r[k]);
  for (int k = 0; k < 8; k += 2) {
    t[k] = __builtin_shuffle(r[k], r[k + 1], Mask8{0, 8, 1, 9, 4, 12, 5, 13});
    t[k + 1] = __builtin_shuffle(r[k], r[k + 1], Mask8{2, 10, 3, 11, 6, 14, 7, 15});
  }
  for (int k = 0; k < 8; k += 4) {
    for (int half = 0; half < 2; ++half) {
      r[k + 2 * half] = __builtin_shuffle(t[k + half], t[k + 2 + half], Mask8{0, 1, 8, 9, 4, 5, 12, 13});
      r[k + 2 * half + 1] = __builtin_shuffle(t[k + half], t[k + 2 + half], Mask8{2, 3, 10, 11, 6, 7, 14, 15});
    }
  }
  for (int k = 0; k < 4; ++k) {
    const Vec8 low = __builtin_shuffle(r[k], r[k + 4], Mask8{0, 1, 2, 3, 8, 9, 10, 11});
    const Vec8 high = __builtin_shuffle(r[k], r[k + 4], Mask8{4, 5, 6, 7, 12, 13, 14, 15});
    std::memcpy(to + k * to_step, &low, sizeof low);
    std::memcpy(to + (k + 4) * to_step, &high, sizeof high);
  }
}
"""

_ROW_BLOCK = 16


def emit(program: Program, choices: Mapping[str, str]) -> str:
    """The kernel's source. The tree must be one input, seen through views."""
    frame = Frame(program, program.root, choices)
    frame.vector = False
    frame.body.text(_PLANES)
    if choices.get("simd") == "vector":
        frame.body.text(_TURN)
    frame.body.line()
    _strip(frame)
    tile = choices["tile"]
    how = f"by tiles of {tile} x {tile}" if tile != "none" else f"in the order of the {choices['copy_order']}"
    return frame.source(_entry(frame), f"Copies plane by plane, {how}.")


def _strip(frame: Frame) -> None:
    body, choices = frame.body, frame.choices
    body.line("// Rows [low, high) of one plane.")
    with body.block("void copy_rows(const float *x, float *y, const Planes &p, int64_t low, int64_t high)"):
        if choices["layout"] == "fast_path":
            body.line("// Where both sides are dense along the columns there is nothing to turn.")
            with body.block("if (p.from_column == 1 && p.to_column == 1)"):
                body.line("for (int64_t i = low; i < high; ++i) {")
                body.line("  std::memcpy(y + i * p.to_row, x + i * p.from_row, p.columns * sizeof(float));")
                body.line("}")
                body.line("return;")
        move = "y[i * p.to_row + j * p.to_column] = x[i * p.from_row + j * p.from_column];"
        rows, columns = "for (int64_t i = low; i < high; ++i)", "for (int64_t j = 0; j < p.columns; ++j)"
        if choices["tile"] == "none":
            outer, inner = (rows, columns) if choices["copy_order"] == "output" else (columns, rows)
            with body.block(outer):
                body.line(f"{inner} {move}")
            return
        body.line(f"constexpr int64_t kTile = {choices['tile']};")
        with body.block("for (int64_t i0 = low; i0 < high; i0 += kTile)"):
            body.line("const int64_t i1 = std::min(high, i0 + kTile);")
            with body.block("for (int64_t j0 = 0; j0 < p.columns; j0 += kTile)"):
                body.line("const int64_t j1 = std::min(p.columns, j0 + kTile);")
                if choices.get("simd") == "vector":
                    with body.block("if (p.from_row == 1 && p.to_column == 1 && i1 - i0 == kTile && j1 - j0 == kTile)"):
                        body.line("for (int64_t i = i0; i < i1; i += 8) {")
                        body.line("  for (int64_t j = j0; j < j1; j += 8) {")
                        body.line(
                            "    turn_8x8(x + i + j * p.from_column, p.from_column, y + i * p.to_row + j, p.to_row);"
                        )
                        body.line("  }")
                        body.line("}")
                        body.line("continue;")
                with body.block("for (int64_t i = i0; i < i1; ++i)"):
                    body.line(f"for (int64_t j = j0; j < j1; ++j) {move}")


def _entry(frame: Frame) -> Writer:
    entry, tile = Writer(), frame.choices["tile"]
    entry.lines(frame.view_lines())
    entry.line("const Planes p = planes_over(v0, out);")
    entry.line(f"constexpr int64_t kRows = {_ROW_BLOCK if tile == 'none' else tile};  // rows that one task copies")
    entry.line("const int64_t strips = (p.rows + kRows - 1) / kRows;")
    with entry.block("const auto work = [&](int64_t begin, int64_t end)", "};"):
        with entry.block("for (int64_t task = begin; task < end; ++task)"):
            entry.line("int64_t from = 0, to = 0, plane = task / strips;")
            with entry.block("for (int64_t d = p.ndim - 1; d >= 0; plane /= p.shape[d--])"):
                entry.line("from += plane % p.shape[d] * p.from[d];")
                entry.line("to += plane % p.shape[d] * p.to[d];")
            entry.line("const int64_t low = task % strips * kRows, high = std::min(p.rows, low + kRows);")
            entry.line("copy_rows(v0.data + from, out.data + to, p, low, high);")
    entry.line("const int64_t tasks = p.count * strips;")
    write_threads(entry, frame, "tasks", "p.count * p.rows * p.columns")
    return entry
