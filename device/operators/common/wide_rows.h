#pragma once
// Rows of several tensors side by side, as floats: read widened and written rounded, whatever their formats and strides.
// Whole numbers are written as the float says, which must be one.
#include <algorithm>
#include <vector>

#include "../common/dtypes.h"
#include "../common/rows.h"

namespace {

class WideRow {
 public:
  WideRow() : WideRow(sb_tensor{nullptr, 0, nullptr, nullptr, SB_FLOAT32}) {}

  explicit WideRow(const sb_tensor &t)
      : data_(t.data),
        dtype_(t.dtype),
        columns_(t.ndim > 0 ? t.shape[t.ndim - 1] : 1),
        step_(columns_ > 1 ? t.strides[t.ndim - 1] : 1),
        places_(t, t.ndim - 1) {}

  int64_t columns() const { return columns_; }
  int64_t count() const { return places_.count; }
  bool direct() const { return dtype_ == SB_FLOAT32 && step_ == 1; }
  bool known() const {
    return with_number(dtype_, [](auto) { return 0; }) == 0;
  }

  const float *read(int64_t r, float *buffer) const {
    if (direct()) return static_cast<const float *>(data_) + places_(r);
    with_number(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T *from = static_cast<const T *>(data_) + places_(r);
      if constexpr (std::is_arithmetic<T>::value) {
        for (int64_t i = 0; i < columns_; ++i) buffer[i] = static_cast<float>(from[i * step_]);
      } else if (step_ == 1) {
        widen(from, buffer, columns_);
      } else {
        for (int64_t i = 0; i < columns_; ++i) widen(from + i * step_, buffer + i, 1);
      }
      return 0;
    });
    return buffer;
  }

  float *place(int64_t r, float *buffer) const {
    return direct() ? static_cast<float *>(data_) + places_(r) : buffer;
  }

  void write(int64_t r, const float *from) const {
    if (direct()) return;
    with_number(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      T *to = static_cast<T *>(data_) + places_(r);
      if constexpr (std::is_arithmetic<T>::value) {
        for (int64_t i = 0; i < columns_; ++i) to[i * step_] = static_cast<T>(from[i]);
      } else if (step_ == 1) {
        narrow(from, to, columns_);
      } else {
        for (int64_t i = 0; i < columns_; ++i) narrow(from + i, to + i * step_, 1);
      }
      return 0;
    });
  }

 private:
  void *data_;
  int32_t dtype_;
  int64_t columns_, step_;
  Places places_;
};

// Calls body(rows of the N tensors x, rows of the M tensors y, r) for every row; the rows of y are then written. Threads
// take consecutive rows, and `own` makes what each of them carries from row to row: body gets it as its last argument.
// Returns what each thread carried, in the order of their rows.
template <int N, int M, class Own, class Body>
std::vector<Own> wide_rows_with(const sb_tensor *const (&x)[N], const sb_tensor *const (&y)[M], int64_t parts,
                                const Own &own, Body body) {
  WideRow in[N], out[M];
  int64_t width = 0;
  for (int k = 0; k < N; ++k) width += (in[k] = WideRow(*x[k])).columns();
  for (int k = 0; k < M; ++k) width += (out[k] = WideRow(*y[k])).columns();
  const int64_t rows = in[0].count();
  parts = std::max<int64_t>(1, std::min(parts, rows));
  std::vector<Own> owned(parts, own);
#pragma omp parallel for schedule(static) if (rows > 1 && rows * width >= SB_PARALLEL)
  for (int64_t part = 0; part < parts; ++part) {
    std::vector<float> buffer(width);
    for (int64_t r = rows * part / parts; r < rows * (part + 1) / parts; ++r) {
      const float *from[N];
      float *to[M], *next = buffer.data();
      for (int k = 0; k < N; next += in[k++].columns()) from[k] = in[k].read(r, next);
      for (int k = 0; k < M; next += out[k++].columns()) to[k] = out[k].place(r, next);
      body(from, to, r, owned[part]);
      for (int k = 0; k < M; ++k) out[k].write(r, to[k]);
    }
  }
  return owned;
}

// All numbers of a tensor of one axis (or one row) as floats.
inline std::vector<float> floats_of(const sb_tensor &t) {
  const WideRow line(t);
  std::vector<float> numbers(line.columns());
  const float *from = line.read(0, numbers.data());
  if (from != numbers.data()) std::copy_n(from, line.columns(), numbers.data());
  return numbers;
}

struct Nothing {};

template <int N, int M, class Body>
int wide_rows(const sb_tensor *const (&x)[N], const sb_tensor *const (&y)[M], Body body) {
  for (const sb_tensor *t : x)
    if (!WideRow(*t).known()) return UNKNOWN_DTYPE;
  for (const sb_tensor *t : y)
    if (!WideRow(*t).known()) return UNKNOWN_DTYPE;
  wide_rows_with(x, y, 64, Nothing{}, [&](const float *const *from, float *const *to, int64_t r, Nothing &) {
    body(from, to, r);
  });
  return 0;
}

// The same where nothing is written row by row.
template <int N, class Body>
int wide_rows(const sb_tensor *const (&x)[N], Body body) {
  for (const sb_tensor *t : x)
    if (!WideRow(*t).known()) return UNKNOWN_DTYPE;
  float none = 0;
  const sb_tensor nowhere = {&none, 0, nullptr, nullptr, SB_FLOAT32};
  wide_rows_with(x, {&nowhere}, 64, Nothing{}, [&](const float *const *from, float *const *, int64_t r, Nothing &) {
    body(from, r);
  });
  return 0;
}

constexpr int LANES = 16;

// The sum of of(i) in double for i < n, in lanes that do not depend on anything but n.
template <class Of>
inline double sum_lanes(int64_t n, Of of) {
  double s[LANES] = {};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; ++j) s[j] += static_cast<double>(of(i + j));
  double total = 0;
  for (; i < n; ++i) total += static_cast<double>(of(i));
  for (double lane : s) total += lane;
  return total;
}

}  // namespace
