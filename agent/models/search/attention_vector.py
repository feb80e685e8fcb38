"""Attention in explicit vectors: tiles of queries share the keys and values that are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.models.search.writer import Writer

if TYPE_CHECKING:
    from agent.models.search.emit_attention import Attention

_PADDED = """
// A matrix copied with its columns filled up with zeros to whole vectors, so that no loop has a rest.
void pad_columns(const float *from, int64_t rows, int64_t columns, int64_t step, float *to, int64_t padded) {
  for (int64_t i = 0; i < rows; ++i) {
    std::memcpy(to + i * padded, from + i * step, columns * sizeof(float));
    std::fill(to + i * padded + columns, to + (i + 1) * padded, 0.0f);
  }
}

int64_t whole_vectors(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }
"""

_TURNED = """
// The keys turned: row l holds coordinate l of every key, so a vector holds one coordinate of many keys.
void turn_keys(const float *k, int64_t keys, int64_t width, int64_t step, float *to, int64_t padded) {
  std::fill(to, to + width * padded, 0.0f);
  for (int64_t j = 0; j < keys; ++j) {
    for (int64_t l = 0; l < width; ++l) to[l * padded + j] = k[j * step + l];
  }
}

// q·k of R queries with keys [from, to): each vector of keys is loaded once for all R.
template <int R>
void dot_products(const float *q, int64_t q_i, const float *k, int64_t k_i, int64_t from, int64_t to, int64_t width,
                  float *scores, int64_t scores_i) {
  int64_t j = from;
  for (; j + 2 * kLanes <= whole_vectors(to); j += 2 * kLanes) {
    Vec sums[R][2] = {};
    for (int64_t l = 0; l < width; ++l) {
      const Vec left = load(k + l * k_i + j), right = load(k + l * k_i + j + kLanes);
      for (int r = 0; r < R; ++r) {
        sums[r][0] += q[r * q_i + l] * left;
        sums[r][1] += q[r * q_i + l] * right;
      }
    }
    for (int r = 0; r < R; ++r) {
      store(scores + r * scores_i + j, sums[r][0]);
      store(scores + r * scores_i + j + kLanes, sums[r][1]);
    }
  }
  for (; j < to; j += kLanes) {
    Vec sums[R] = {};
    for (int64_t l = 0; l < width; ++l) {
      const Vec key = load(k + l * k_i + j);
      for (int r = 0; r < R; ++r) sums[r] += q[r * q_i + l] * key;
    }
    for (int r = 0; r < R; ++r) store(scores + r * scores_i + j, sums[r]);
  }
}
"""

_IN_ROWS = """
// q·k of R queries with keys [from, to): each key is loaded once for all R; lanes run along the coordinates.
template <int R>
void dot_products(const float *q, int64_t q_i, const float *k, int64_t k_i, int64_t from, int64_t to, int64_t width,
                  float *scores, int64_t scores_i) {
  for (int64_t j = from; j < to; ++j) {
    Vec sums[R] = {};
    for (int64_t l = 0; l < width; l += kLanes) {
      const Vec key = load(k + j * k_i + l);
      for (int r = 0; r < R; ++r) sums[r] += load(q + r * q_i + l) * key;
    }
    for (int r = 0; r < R; ++r) scores[r * scores_i + j] = sum_lanes(sums[r]);
  }
}
"""

_GATHER = """
// Adds the values of keys [from, to), weighted, to R rows of sums.
template <int R>
void gather(const float *weights, int64_t weights_i, const float *v, int64_t v_i, int64_t from, int64_t to,
            int64_t columns, float *sums, int64_t sums_i) {
  for (int64_t c = 0; c < columns; c += kLanes) {
    Vec total[R];
    for (int r = 0; r < R; ++r) total[r] = @START@;
    for (int64_t j = from; j < to; ++j) {
      const Vec value = load(v + j * v_i + c);
      for (int r = 0; r < R; ++r) total[r] += weights[r * weights_i + j] * value;
    }
    for (int r = 0; r < R; ++r) store(sums + r * sums_i + c, @END@);
  }
}
"""

BLOCK = 128


def vector_queries(attention: Attention) -> Writer:
    """Write the functions of a tile of queries; return how tiles become tasks."""
    frame, body = attention.frame, attention.frame.body
    turned = frame.choices.get("keys") == "transposed"
    if not turned:
        frame.used.add("sum_lanes")
    body.text(_PADDED)
    body.text(_TURNED if turned else _IN_ROWS)
    held = "load(sums + r * sums_i + c)"
    start, end = ("Vec{}", f"{held} + total[r]") if attention.blocked else (held, "total[r]")
    body.text(_GATHER.replace("@START@", start).replace("@END@", end))
    body.line()
    _tile(attention)
    return _tasks(attention, turned=turned)


def _tile(attention: Attention) -> None:
    frame, body = attention.frame, attention.frame.body
    online = frame.choices["softmax_shift"] == "online"
    body.line("// R queries: scores, weights, and the weighted sum of the values, in `sums`.")
    body.line("template <int R>")
    head = (
        "void some_queries(const float *q, int64_t q_i, const float *k, int64_t k_i, const float *v, int64_t v_i, "
        "int64_t keys, int64_t dots, int64_t width, int64_t columns, float *scores, int64_t scores_i, float *sums, "
        f"float *y, int64_t y_i, int64_t y_j{frame.attribute_parameters()})"
    )
    with body.block(head):
        body.line("const int64_t padded = whole_vectors(columns);")
        body.line("std::fill(sums, sums + R * padded, 0.0f);")
        body.line("float top[R], total[R];")
        body.line("std::fill(top, top + R, -INFINITY);")
        body.line("std::fill(total, total + R, 0.0f);")
        loop = f"for (int64_t from = 0; from < keys; from += {BLOCK})" if online else ""
        with body.block(loop):
            if online:
                body.line(f"const int64_t to = std::min<int64_t>(keys, from + {BLOCK});")
            else:
                body.line("const int64_t from = 0, to = keys;")
            body.line("dot_products<R>(q, q_i, k, k_i, from, to, dots, scores, scores_i);")
            with body.block("for (int r = 0; r < R; ++r)"):
                _weights(attention, online=online)
            if attention.blocked and not online:
                body.line("// Blocks of keys are summed on their own first, which keeps more digits of a long sum.")
                with body.block(f"for (int64_t low = 0; low < keys; low += {BLOCK})"):
                    body.line(f"const int64_t high = std::min<int64_t>(keys, low + {BLOCK});")
                    body.line("gather<R>(scores, scores_i, v, v_i, low, high, padded, sums, padded);")
            else:
                body.line("gather<R>(scores, scores_i, v, v_i, from, to, padded, sums, padded);")
        with body.block("for (int r = 0; r < R; ++r)"):
            if frame.choices.get("division") == "reciprocal":
                body.line("const float share = 1.0f / total[r];")
                body.line("for (int64_t c = 0; c < columns; ++c) y[r * y_i + c * y_j] = sums[r * padded + c] * share;")
            else:
                body.line(
                    "for (int64_t c = 0; c < columns; ++c) y[r * y_i + c * y_j] = sums[r * padded + c] / total[r];"
                )
    body.line()


def _weights(attention: Attention, *, online: bool) -> None:
    frame, body = attention.frame, attention.frame.body
    shift = frame.choices["softmax_shift"]
    call = f"static_cast<float>(width){frame.attribute_arguments()}"
    body.line("float *row = scores + r * scores_i;")
    body.line("int64_t j = from;")
    body.line(f"for (; j + kLanes <= to; j += kLanes) store(row + j, score(load(row + j), {call}));")
    body.line(f"for (; j < to; ++j) row[j] = score(row[j], {call});")
    if shift != "none":
        body.line("float raised = top[r];")
        body.line("#pragma omp simd reduction(max : raised)")
        body.line("for (int64_t i = from; i < to; ++i) raised = row[i] > raised ? row[i] : raised;")
    if online:
        with body.block("if (raised != top[r])"):
            body.line("// What was gathered under the old maximum shrinks to the new one.")
            body.line("const float shrink = std::exp(top[r] - raised);")
            body.line("total[r] *= shrink;")
            body.line("for (int64_t c = 0; c < padded; ++c) sums[r * padded + c] *= shrink;")
    if shift != "none":
        body.line("top[r] = raised;")
    less = "" if shift == "none" else " - raised"
    body.line("Vec part = {};")
    with body.block("for (j = from; j + kLanes <= to; j += kLanes)"):
        body.line(f"const Vec e = {attention.exp(f'load(row + j){less}', vector=True)};")
        body.line("store(row + j, e);")
        body.line("part += e;")
    frame.used.add("sum_lanes")
    body.line("float sum = sum_lanes(part);")
    body.line(f"for (; j < to; ++j) sum += row[j] = {attention.exp(f'row[j]{less}')};")
    body.line("total[r] += sum;")


def _tasks(attention: Attention, *, turned: bool) -> Writer:
    tasks, frame = Writer(), attention.frame
    tile = frame.choices.get("query_tile", "1")
    tasks.line("// Keys and values are padded to whole vectors once, for all queries.")
    tasks.line("const int64_t dense = whole_vectors(width), padded = whole_vectors(columns);")
    if turned:
        tasks.line("const int64_t k_step = whole_vectors(keys), dots = width;")
        tasks.line("std::vector<float> k_padded(width * k_step), v_padded(keys * padded);")
        tasks.line("turn_keys(k, keys, width, k_i, k_padded.data(), k_step);")
    else:
        tasks.line("const int64_t k_step = dense, dots = dense;")
        tasks.line("std::vector<float> k_padded(keys * dense), v_padded(keys * padded);")
        tasks.line("pad_columns(k, keys, width, k_i, k_padded.data(), dense);")
    tasks.line("pad_columns(v, keys, columns, v_i, v_padded.data(), padded);")
    tasks.line(f"constexpr int kTile = {tile};")
    tasks.line("const int64_t tasks = (queries + kTile - 1) / kTile, scores_i = whole_vectors(keys);")
    with tasks.block("const auto work = [&](int64_t begin, int64_t end)", "};"):
        tasks.line("std::vector<float> rows(kTile * dense), scores(kTile * scores_i), sums(kTile * padded);")
        with tasks.block("for (int64_t task = begin; task < end; ++task)"):
            tasks.line("const int64_t i = task * kTile, count = std::min<int64_t>(kTile, queries - i);")
            tasks.line("pad_columns(q + i * q_i, count, width, q_i, rows.data(), dense);")
            common = (
                "k_padded.data(), k_step, v_padded.data(), padded, keys, dots, width, columns, scores.data(), "
                "scores_i, sums.data(), "
            )
            extra = frame.attribute_arguments()
            if tile == "1":
                tasks.line(f"some_queries<1>(rows.data(), dense, {common}y + i * y_i, y_i, y_j{extra});")
            else:
                with tasks.block("if (count == kTile)"):
                    tasks.line(f"some_queries<kTile>(rows.data(), dense, {common}y + i * y_i, y_i, y_j{extra});")
                    tasks.line("continue;")
                with tasks.block("for (int64_t r = 0; r < count; ++r)"):
                    tasks.line(
                        f"some_queries<1>(rows.data() + r * dense, dense, {common}y + (i + r) * y_i, y_i, y_j{extra});"
                    )
    return tasks
