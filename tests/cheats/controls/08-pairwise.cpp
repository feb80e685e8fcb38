#include "../honest.h"
// Adds by halves, recursively, in float.
static float squares(const float *x, int64_t n, int64_t step) {
    if (n > 16) return squares(x, n / 2, step) + squares(x + n / 2 * step, n - n / 2, step);
    float sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += x[j * step] * x[j * step];
    return sum;
}
KERNEL {
    const Rows x(in[0]);
#pragma omp parallel for
    for (int64_t i = 0; i < x.count; ++i) {
        const float mean = squares(x[i], x.length, x.step) / static_cast<float>(x.length);
        const float scale = 1 / std::sqrt(mean + static_cast<float>(attributes[0]));
        for (int64_t j = 0; j < x.length; ++j)
            floats(out[0])[i * x.length + j] = x[i][j * x.step] * scale * floats(in[1])[j];
    }
    return 0;
}
