"""Softmax along the last axis with its stages recorded, and kernels of `double` that are wrong in ways sanitizers know."""

from __future__ import annotations

from tests.device.small import kernel

_SOFTMAX = """#include <cmath>
#include "sagebook_kernel.h"
extern "C" int sagebook_kernel(const sb_tensor *in, int64_t, sb_tensor *out, int64_t, const double *, int64_t) {
  const sb_tensor &x = in[0];
  const int64_t n = x.shape[x.ndim - 1], s = x.strides[x.ndim - 1];
  int64_t rows = 1;
  for (int d = 0; d + 1 < x.ndim; ++d) rows *= x.shape[d];
  float *y = static_cast<float *>(out[0].data);
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    int64_t at = 0, left = r;
    for (int64_t d = x.ndim - 2; d >= 0; --d) at += left % x.shape[d] * x.strides[d], left /= x.shape[d];
    const float *row = static_cast<const float *>(x.data) + at;
    float m = -INFINITY;
    for (int64_t i = 0; i < n; ++i) m = std::fmax(m, row[i * s]);
    SB_DUMP("maximum", &m, 1, SB_FLOAT32);
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) y[r * n + i] = std::exp(row[i * s] - m);
    SB_DUMP_AT("exponentials", y + r * n, n, SB_FLOAT32, r * n);
    for (int64_t i = 0; i < TERMS; ++i) sum += y[r * n + i];
    SB_DUMP("sum", &sum, 1, SB_FLOAT64);
    for (int64_t i = 0; i < WRITTEN; ++i) y[r * n + i] = static_cast<float>(y[r * n + i] / sum);
  }
  return 0;
}
"""


def softmax(*, terms: str = "n", written: str = "n") -> str:
    """A softmax that adds so many terms, and divides so many elements."""
    return _SOFTMAX.replace("TERMS", terms).replace("WRITTEN", written)


MARK = "/*here*/"

WRONG = {
    "heap-buffer-overflow": kernel(
        f"    float *own = new float[m];\n    own[m] = 1.0f; {MARK}\n    b[0] = own[m - 1];\n    delete[] own;\n"
    ),
    "stack-buffer-overflow": kernel(
        f"    volatile float own[8] = {{}};\n    for (int64_t i = 0; i < 8 + n; ++i) own[i] = 1.0f; {MARK}\n"
    ),
    "heap-use-after-free": kernel(
        f"    float *volatile own = new float[m];\n    own[0] = 1;\n    delete[] own;\n    b[0] = own[0]; {MARK}\n"
    ),
    "use-after-poison": kernel(f"    b[n * m] = 1.0f; {MARK}\n"),
    "signed-overflow": kernel(
        f"    int big = 2147483647 - static_cast<int>(n) + 1;\n    big += static_cast<int>(n); {MARK}\n    b[0] = big;\n"
    ),
    "misaligned-access": kernel(
        "    alignas(8) char room[16] = {};\n"
        f"    b[0] = static_cast<float>(*reinterpret_cast<double *>(room + n % 1 + 1)); {MARK}\n"
    ),
    "data race": kernel(
        "    static volatile float last[1];\n    #pragma omp parallel for\n    for (int64_t i = 0; i < 64; ++i)\n"
        f"        last[0] = last[0] + i; {MARK}\n    b[0] = last[0];\n"
    ),
}
"""What each sanitizer must report, and a kernel of `double` that does it on the line that is marked."""


def line_of(source: str) -> int:
    """The number of the marked line."""
    return next(number for number, line in enumerate(source.splitlines(), 1) if MARK in line)


HONEST = {
    "regions in a row": kernel(
        "    static float sums[64];\n"
        "    #pragma omp parallel\n    {\n"
        "        #pragma omp for schedule(dynamic)\n        for (int i = 0; i < 64; ++i) sums[i] = i;\n"
        "        #pragma omp for\n        for (int i = 0; i < 64; ++i) sums[i] += sums[63 - i] * 0;\n    }\n"
        "    float total = 0;\n    for (float s : sums) total += s;\n    b[0] = total;\n"
        .replace("sums[i] += sums[63 - i] * 0", "sums[i] += 1")
    ),
    "barriers": kernel(
        "    float parts[64] = {};\n    float all[64] = {};\n"
        "    #pragma omp parallel if (n > 1)\n    {\n"
        "        for (int turn = 0; turn < 5; ++turn) {\n"
        "            #pragma omp for\n            for (int i = 0; i < 64; ++i) parts[i] = all[63 - i] + 1;\n"
        "            #pragma omp for\n            for (int i = 0; i < 64; ++i) all[i] = parts[63 - i] + 1;\n"
        "        }\n    }\n    b[0] = all[0];\n"
    ),
    "critical, atomic, reduction, single": kernel(
        "    double sum = 0, other = 0;\n    int64_t count = 0, once = 0, least = 1 << 30;\n"
        "    #pragma omp parallel for reduction(+ : sum) reduction(min : least) schedule(guided)\n"
        "    for (int64_t i = 0; i < 100; ++i) {\n        sum += i;\n        if (i < least) least = i;\n"
        "        #pragma omp critical\n        other += i;\n"
        "        #pragma omp critical(named)\n        ++once;\n"
        "        #pragma omp atomic\n        ++count;\n    }\n"
        "    #pragma omp parallel\n    {\n        #pragma omp single\n        other += sum + count + once + least;\n"
        "        #pragma omp sections\n        {\n            #pragma omp section\n            sum = other;\n"
        "            #pragma omp section\n            count = 3;\n        }\n        #pragma omp master\n        sum += count;\n    }\n"
        "    b[0] = static_cast<float>(sum);\n"
    ),
    "a lock": kernel(
        "    omp_lock_t lock;\n    omp_init_lock(&lock);\n    double sum = 0;\n    #pragma omp parallel for\n"
        "    for (int64_t i = 0; i < 100; ++i) {\n        omp_set_lock(&lock);\n        sum += i;\n"
        "        omp_unset_lock(&lock);\n    }\n    omp_destroy_lock(&lock);\n    b[0] = static_cast<float>(sum);\n",
        includes="#include <omp.h>\n",
    ),
    "buffers": kernel(
        "    std::vector<float> own(m + 15);\n    #pragma omp parallel for\n    for (int64_t i = 0; i < m; ++i) own[i] = i;\n"
        "    b[0] = own[m - 1];\n",
        includes="#include <vector>\n",
    ),
}  # fmt: skip
"""Kernels of `double` in which nothing is wrong, though their threads have something to agree on."""
