#include "../honest.h"
// Adds each row from its end, in eight lanes.
KERNEL {
    const Rows x(in[0]);
    float *y = floats(out[0]);
#pragma omp parallel for
    for (int64_t i = 0; i < x.count; ++i) {
        double lanes[8] = {};
        for (int64_t j = x.length - 1; j >= 0; --j) lanes[j % 8] += static_cast<double>(x[i][j * x.step]) * x[i][j * x.step];
        double sum = 0;
        for (int l = 7; l >= 0; --l) sum += lanes[l];
        const float scale = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(x.length) + attributes[0]));
        for (int64_t j = x.length - 1; j >= 0; --j) y[i * x.length + j] = x[i][j * x.step] * scale * floats(in[1])[j];
    }
    return 0;
}
