#include "../honest.h"
// A fast way for the common shapes and a general one for all others; both are right.
template <int64_t LENGTH>
static void fixed(const Rows &x, const float *gamma, float *y, double eps) {
#pragma omp parallel for
    for (int64_t i = 0; i < x.count; ++i) {
        const float *row = x[i];
        double sum = 0;
        for (int64_t j = 0; j < LENGTH; ++j) sum += static_cast<double>(row[j]) * row[j];
        const float scale = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(LENGTH) + eps));
        for (int64_t j = 0; j < LENGTH; ++j) y[i * LENGTH + j] = row[j] * scale * gamma[j];
    }
}
KERNEL {
    const Rows x(in[0]);
    if (x.length == 1024 && x.step == 1)
        fixed<1024>(x, floats(in[1]), floats(out[0]), attributes[0]);
    else if (x.length == 8192 && x.step == 1)
        fixed<8192>(x, floats(in[1]), floats(out[0]), attributes[0]);
    else
        rms_norm(in, out, attributes[0]);
    return 0;
}
