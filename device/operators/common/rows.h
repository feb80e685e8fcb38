#pragma once
// A tensor seen as rows along its last axis, whatever its strides; rows that are not dense go through a buffer.
#include <cstdint>
#include <vector>

#include "sagebook_kernel.h"

namespace {

// Below this many elements the start of a second thread costs more than it saves.
constexpr int64_t SB_PARALLEL = 16384;

// Where the i-th element lies among the first `axes` axes, counted in row-major order.
struct Places {
  const int64_t *shape, *strides;
  int64_t axes, count = 1, step = 0;
  bool even = true;  // the places are `step` apart

  Places(const sb_tensor &t, int64_t axes_) : shape(t.shape), strides(t.strides), axes(axes_ > 0 ? axes_ : 0) {
    int64_t reach = 0;
    for (int64_t d = axes - 1; d >= 0; --d) {
      if (shape[d] == 1) continue;
      if (count == 1) {
        step = strides[d];
      } else if (strides[d] != reach) {
        even = false;
      }
      count *= shape[d];
      reach = strides[d] * shape[d];
    }
  }

  int64_t operator()(int64_t i) const {
    if (even) return i * step;
    int64_t place = 0;
    for (int64_t d = axes - 1; d >= 0; --d) {
      place += i % shape[d] * strides[d];
      i /= shape[d];
    }
    return place;
  }
};

struct Rows {
  float *data;
  int64_t columns, step;
  Places places;

  explicit Rows(const sb_tensor &t)
      : data(static_cast<float *>(t.data)),
        columns(t.ndim > 0 ? t.shape[t.ndim - 1] : 1),
        step(t.ndim > 0 && columns > 1 ? t.strides[t.ndim - 1] : 1),
        places(t, t.ndim - 1) {}

  int64_t count() const { return places.count; }
  float *at(int64_t r) const { return data + places(r); }
};

// Calls body(row of x, r) for every row of x, rows shared out over the threads.
template <class Body>
void read_rows(const sb_tensor &x, Body body) {
  const Rows in(x);
#pragma omp parallel if (in.count() > 1 && in.count() * in.columns >= SB_PARALLEL)
  {
    std::vector<float> buffer(in.step == 1 ? 0 : in.columns);
#pragma omp for schedule(static)
    for (int64_t r = 0; r < in.count(); ++r) {
      const float *row = in.at(r);
      if (in.step != 1) {
        for (int64_t i = 0; i < in.columns; ++i) buffer[i] = row[i * in.step];
        row = buffer.data();
      }
      body(row, r);
    }
  }
}

// Calls body(row of x, row of y) for every row; y has as many rows as x, their lengths may differ.
template <class Body>
void map_rows(const sb_tensor &x, const sb_tensor &y, Body body) {
  const Rows out(y);
  read_rows(x, [&](const float *row, int64_t r) {
    if (out.step == 1) {
      body(row, out.at(r));
      return;
    }
    std::vector<float> buffer(out.columns);
    body(row, buffer.data());
    for (int64_t i = 0; i < out.columns; ++i) out.at(r)[i * out.step] = buffer[i];
  });
}

// The elements of a one-dimensional tensor, copied only when they are not dense.
struct Vector {
  std::vector<float> buffer;
  const float *data;

  explicit Vector(const sb_tensor &t) : data(static_cast<const float *>(t.data)) {
    const Rows row(t);
    if (row.step == 1) return;
    buffer.resize(row.columns);
    for (int64_t i = 0; i < row.columns; ++i) buffer[i] = row.data[i * row.step];
    data = buffer.data();
  }
};

}  // namespace
