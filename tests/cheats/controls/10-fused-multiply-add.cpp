#include "../honest.h"
// Dot products by fused multiply-add, in blocks of 32 over k.
KERNEL {
    const int64_t m = in[0].shape[0], k = in[0].shape[1], n = in[1].shape[1];
    const float *a = floats(in[0]), *b = floats(in[1]);
#pragma omp parallel for
    for (int64_t i = 0; i < m; ++i) {
        std::vector<float> total(n), block(n);
        for (int64_t l = 0; l < k; ++l) {
            const float left = a[i * in[0].strides[0] + l * in[0].strides[1]];
            for (int64_t j = 0; j < n; ++j)
                block[j] = std::fma(left, b[l * in[1].strides[0] + j * in[1].strides[1]], block[j]);
            if (l % 32 != 31 && l != k - 1) continue;
            for (int64_t j = 0; j < n; ++j) total[j] += block[j], block[j] = 0;
        }
        std::copy(total.begin(), total.end(), floats(out[0]) + i * n);
    }
    return 0;
}
