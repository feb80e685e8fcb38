// What the candidates and the controls share: where an element lies, and simple right answers.
#pragma once
#include "sagebook_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#define KERNEL                                                                                                    \
    extern "C" int sagebook_kernel(const sb_tensor *in, int64_t n_in, sb_tensor *out, int64_t n_out,               \
                                   const double *attributes, int64_t n_attributes)

inline int64_t size_of(const sb_tensor &t) {
    int64_t n = 1;
    for (int64_t a = 0; a < t.ndim; ++a) n *= t.shape[a];
    return n;
}

// Where the i-th element in row-major order lies, in elements from the start.
inline int64_t at(const sb_tensor &t, int64_t i) {
    int64_t place = 0;
    for (int64_t a = t.ndim - 1; a >= 0; --a) {
        place += i % t.shape[a] * t.strides[a];
        i /= t.shape[a];
    }
    return place;
}

inline bool dense(const sb_tensor &t) {
    int64_t step = 1;
    for (int64_t a = t.ndim - 1; a >= 0; step *= t.shape[a--])
        if (t.shape[a] != 1 && t.strides[a] != step) return false;
    return true;
}

inline float *floats(const sb_tensor &t) { return static_cast<float *>(t.data); }

// The rows along the last axis.
struct Rows {
    const sb_tensor &t;
    int64_t length, count, step;
    explicit Rows(const sb_tensor &tensor)
        : t(tensor), length(t.shape[t.ndim - 1]), count(size_of(t) / length), step(t.strides[t.ndim - 1]) {}
    float *operator[](int64_t i) const { return floats(t) + at(t, i * length); }
};

inline double gelu_of(double x) { return 0.5 * x * std::erfc(-x * 0.70710678118654752440); }

inline void gelu(const sb_tensor *in, sb_tensor *out) {
    const int64_t n = size_of(out[0]);
    const float *x = floats(in[0]);
    float *y = floats(out[0]);
#pragma omp parallel for
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(gelu_of(x[at(in[0], i)]));
}

inline void rms_norm(const sb_tensor *in, sb_tensor *out, double eps) {
    const Rows x(in[0]);
    const float *gamma = floats(in[1]);
    float *y = floats(out[0]);
#pragma omp parallel for
    for (int64_t i = 0; i < x.count; ++i) {
        const float *row = x[i];
        double sum = 0;
        for (int64_t j = 0; j < x.length; ++j) sum += static_cast<double>(row[j * x.step]) * row[j * x.step];
        const float scale = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(x.length) + eps));
        for (int64_t j = 0; j < x.length; ++j) y[i * x.length + j] = row[j * x.step] * scale * gamma[j];
    }
}

inline void softmax(const sb_tensor *in, sb_tensor *out) {
    const Rows x(in[0]);
    float *y = floats(out[0]);
#pragma omp parallel for
    for (int64_t i = 0; i < x.count; ++i) {
        const float *row = x[i];
        float top = row[0];
        for (int64_t j = 1; j < x.length; ++j) top = std::max(top, row[j * x.step]);
        double sum = 0;
        for (int64_t j = 0; j < x.length; ++j) sum += y[i * x.length + j] = std::exp(row[j * x.step] - top);
        const float scale = static_cast<float>(1 / sum);
        for (int64_t j = 0; j < x.length; ++j) y[i * x.length + j] *= scale;
    }
}

inline void matmul(const sb_tensor *in, sb_tensor *out) {
    const int64_t m = in[0].shape[0], k = in[0].shape[1], n = in[1].shape[1];
    const float *a = floats(in[0]), *b = floats(in[1]);
    float *y = floats(out[0]);
#pragma omp parallel for
    for (int64_t i = 0; i < m; ++i) {
        std::vector<double> sums(n);
        for (int64_t l = 0; l < k; ++l) {
            const double left = a[i * in[0].strides[0] + l * in[0].strides[1]];
            const float *right = b + l * in[1].strides[0];
            for (int64_t j = 0; j < n; ++j) sums[j] += left * right[j * in[1].strides[1]];
        }
        for (int64_t j = 0; j < n; ++j) y[i * n + j] = static_cast<float>(sums[j]);
    }
}

// Where the element of an input lies that meets the i-th output element when the shapes are aligned at the last axis.
inline int64_t broadcast_at(const sb_tensor &t, const sb_tensor &out, int64_t i) {
    int64_t place = 0;
    for (int64_t a = out.ndim - 1, b = t.ndim - 1; b >= 0; --a, --b) {
        if (t.shape[b] != 1) place += i % out.shape[a] * t.strides[b];
        i /= out.shape[a];
    }
    return place;
}

inline void add(const sb_tensor *in, sb_tensor *out) {
    const int64_t n = size_of(out[0]);
    float *y = floats(out[0]);
#pragma omp parallel for
    for (int64_t i = 0; i < n; ++i)
        y[i] = floats(in[0])[broadcast_at(in[0], out[0], i)] + floats(in[1])[broadcast_at(in[1], out[0], i)];
}
