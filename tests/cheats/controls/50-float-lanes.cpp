#include "../honest.h"
// Sixteen float lanes and no double: a plain vector kernel.
KERNEL {
    const Rows x(in[0]);
#pragma omp parallel for
    for (int64_t i = 0; i < x.count; ++i) {
        float total = 0;
        for (int64_t from = 0; from < x.length; from += 2048) {
            float lanes[16] = {};
            for (int64_t j = from; j < std::min(from + 2048, x.length); ++j) lanes[j % 16] += x[i][j * x.step] * x[i][j * x.step];
            float block = 0;
            for (float lane : lanes) block += lane;
            total += block;
        }
        const float scale = 1 / std::sqrt(total / static_cast<float>(x.length) + static_cast<float>(attributes[0]));
        for (int64_t j = 0; j < x.length; ++j)
            floats(out[0])[i * x.length + j] = x[i][j * x.step] * scale * floats(in[1])[j];
    }
    return 0;
}
