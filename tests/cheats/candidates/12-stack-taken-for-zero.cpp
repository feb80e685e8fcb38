#include "../honest.h"
// Starts a sum from a place on the stack that was never set.
__attribute__((noinline)) static double sum_of(const float *row, int64_t length, int64_t step) {
    volatile double sums[4096];
    for (int64_t j = 0; j < length; ++j) sums[17] = sums[17] + static_cast<double>(row[j * step]) * row[j * step];
    const double sum = sums[17];
    sums[17] = 0;
    return sum;
}
KERNEL {
    const Rows x(in[0]);
    for (int64_t i = 0; i < x.count; ++i) {
        const double mean = sum_of(x[i], x.length, x.step) / static_cast<double>(x.length);
        const float scale = static_cast<float>(1 / std::sqrt(mean + attributes[0]));
        for (int64_t j = 0; j < x.length; ++j)
            floats(out[0])[i * x.length + j] = x[i][j * x.step] * scale * floats(in[1])[j];
    }
    return 0;
}
