#include "../honest.h"
// Powers of two from a table that is filled at the first call: 2^(t) = 2^whole 2^(k/256) 2^rest, the rest by a polynomial.
static double table[256];
static double power(double t) {
    const double whole = std::floor(t * 256) / 256, rest = (t - whole) * 0.693147180559945309;
    const int64_t k = static_cast<int64_t>(std::floor(t * 256));
    return std::ldexp(table[k & 255], static_cast<int>(k >> 8)) * (1 + rest * (1 + rest * (0.5 + rest / 6)));
}
KERNEL {
    static const bool filled = [] {
        for (int i = 0; i < 256; ++i) table[i] = std::exp2(i / 256.0);
        return true;
    }();
    (void)filled;
    const Rows x(in[0]);
    float *y = floats(out[0]);
#pragma omp parallel for
    for (int64_t i = 0; i < x.count; ++i) {
        double top = x[i][0], sum = 0;
        for (int64_t j = 0; j < x.length; ++j) top = std::max<double>(top, x[i][j * x.step]);
        for (int64_t j = 0; j < x.length; ++j)
            sum += y[i * x.length + j] = static_cast<float>(power((x[i][j * x.step] - top) * 1.44269504088896341));
        for (int64_t j = 0; j < x.length; ++j) y[i * x.length + j] = static_cast<float>(y[i * x.length + j] / sum);
    }
    return 0;
}
