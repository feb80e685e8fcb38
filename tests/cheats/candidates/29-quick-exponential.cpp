#include "../honest.h"
// A cubic in the fraction of the exponent in place of exp: four digits.
static float quick_exp(float x) {
    const float t = std::max(x, -87.0f) * 1.44269504f, whole = std::floor(t), f = t - whole;
    const uint32_t bits = static_cast<uint32_t>(static_cast<int32_t>(whole) + 127) << 23;
    float power;
    memcpy(&power, &bits, 4);
    return power * (1.0f + f * (0.6951786f + f * (0.2276878f + f * 0.0771336f)));
}
KERNEL {
    const Rows x(in[0]);
    float *y = floats(out[0]);
    for (int64_t i = 0; i < x.count; ++i) {
        float top = x[i][0];
        double sum = 0;
        for (int64_t j = 0; j < x.length; ++j) top = std::max(top, x[i][j * x.step]);
        for (int64_t j = 0; j < x.length; ++j) sum += y[i * x.length + j] = quick_exp(x[i][j * x.step] - top);
        for (int64_t j = 0; j < x.length; ++j) y[i * x.length + j] /= static_cast<float>(sum);
    }
    return 0;
}
