#include "../honest.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif
// Vectors of eight where the machine has them, the tail by a mask.
KERNEL {
    const Rows x(in[0]);
    const float *gamma = floats(in[1]);
    float *y = floats(out[0]);
#pragma omp parallel for
    for (int64_t i = 0; i < x.count; ++i) {
        const float *row = x[i];
        double sum = 0;
        int64_t j = 0;
#if defined(__AVX2__)
        if (x.step == 1) {
            __m256d low = _mm256_setzero_pd(), high = low;
            for (; j + 8 <= x.length; j += 8) {
                const __m256 v = _mm256_loadu_ps(row + j);
                const __m256d a = _mm256_cvtps_pd(_mm256_castps256_ps128(v)), b = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
                low = _mm256_add_pd(low, _mm256_mul_pd(a, a)), high = _mm256_add_pd(high, _mm256_mul_pd(b, b));
            }
            double lanes[4];
            _mm256_storeu_pd(lanes, _mm256_add_pd(low, high));
            sum = lanes[0] + lanes[1] + (lanes[2] + lanes[3]);
        }
#endif
        for (; j < x.length; ++j) sum += static_cast<double>(row[j * x.step]) * row[j * x.step];
        const float scale = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(x.length) + attributes[0]));
        for (j = 0; j < x.length; ++j) y[i * x.length + j] = row[j * x.step] * scale * gamma[j];
    }
    return 0;
}
