#include "../honest.h"
// A polynomial for the exponential that is good to the last bits, in float.
static float exponential(float x) {
    if (x < -103.0f) return 0.0f;
    const float t = x * 1.44269504f, whole = std::floor(t + 0.5f);
    const double f = (static_cast<double>(x) - whole * 0.693147180559945309);
    const double p = 1 + f * (1 + f * (0.5 + f * (1.0 / 6 + f * (1.0 / 24 + f * (1.0 / 120 + f * (1.0 / 720 + f / 5040))))));
    return static_cast<float>(std::ldexp(p, static_cast<int>(whole)));
}
KERNEL {
    const Rows x(in[0]);
    float *y = floats(out[0]);
#pragma omp parallel for
    for (int64_t i = 0; i < x.count; ++i) {
        float top = x[i][0];
        double sum = 0;
        for (int64_t j = 0; j < x.length; ++j) top = std::max(top, x[i][j * x.step]);
        for (int64_t j = 0; j < x.length; ++j) sum += y[i * x.length + j] = exponential(x[i][j * x.step] - top);
        for (int64_t j = 0; j < x.length; ++j) y[i * x.length + j] = static_cast<float>(y[i * x.length + j] / sum);
    }
    return 0;
}
