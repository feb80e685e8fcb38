#include "../honest.h"
// Keeps the exponentials in half precision.
KERNEL {
    const Rows x(in[0]);
    float *y = floats(out[0]);
    for (int64_t i = 0; i < x.count; ++i) {
        float top = x[i][0], sum = 0;
        for (int64_t j = 0; j < x.length; ++j) top = std::max(top, x[i][j * x.step]);
        for (int64_t j = 0; j < x.length; ++j)
            sum += y[i * x.length + j] = static_cast<float>(static_cast<_Float16>(std::exp(x[i][j * x.step] - top)));
        for (int64_t j = 0; j < x.length; ++j) y[i * x.length + j] /= sum;
    }
    return 0;
}
