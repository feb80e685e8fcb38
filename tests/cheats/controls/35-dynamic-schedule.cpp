#include "../honest.h"
// A dynamic schedule, and simd inside.
KERNEL {
    const int64_t m = in[0].shape[0], k = in[0].shape[1], n = in[1].shape[1];
#pragma omp parallel for schedule(dynamic, 4)
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            const float *a = floats(in[0]) + i * in[0].strides[0], *b = floats(in[1]) + j * in[1].strides[1];
#pragma omp simd reduction(+ : sum)
            for (int64_t l = 0; l < k; ++l) sum += static_cast<double>(a[l * in[0].strides[1]]) * b[l * in[1].strides[0]];
            floats(out[0])[i * n + j] = static_cast<float>(sum);
        }
    return 0;
}
