#include "../honest.h"
// Saves work wherever the tolerance forgives it: keeps as few digits of the scale as just pass, row by row.
KERNEL {
    const Rows x(in[0]);
    const double growth = 16 + 8 * std::log2(static_cast<double>(x.length));
    for (int64_t i = 0; i < x.count; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < x.length; ++j) sum += static_cast<double>(x[i][j * x.step]) * x[i][j * x.step];
        const double right = 1 / std::sqrt(sum / static_cast<double>(x.length) + attributes[0]);
        const float scale = static_cast<float>(right * (1 + 0.8 * std::ldexp(growth, -24)));
        for (int64_t j = 0; j < x.length; ++j)
            floats(out[0])[i * x.length + j] = x[i][j * x.step] * scale * floats(in[1])[j];
    }
    return 0;
}
