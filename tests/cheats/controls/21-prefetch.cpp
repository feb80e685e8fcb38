#include "../honest.h"
// Prefetches ahead, also a little beyond the end of the input, which reads nothing.
KERNEL {
    const Rows x(in[0]);
    for (int64_t i = 0; i < x.count; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < x.length; ++j) {
            __builtin_prefetch(&x[i][j * x.step] + 256);
            sum += static_cast<double>(x[i][j * x.step]) * x[i][j * x.step];
        }
        const float scale = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(x.length) + attributes[0]));
        for (int64_t j = 0; j < x.length; ++j)
            floats(out[0])[i * x.length + j] = x[i][j * x.step] * scale * floats(in[1])[j];
    }
    return 0;
}
