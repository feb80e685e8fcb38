#include "../honest.h"
// Compensated summation in float.
KERNEL {
    const Rows x(in[0]);
#pragma omp parallel for
    for (int64_t i = 0; i < x.count; ++i) {
        float sum = 0, lost = 0;
        for (int64_t j = 0; j < x.length; ++j) {
            const float term = x[i][j * x.step] * x[i][j * x.step] - lost, next = sum + term;
            lost = (next - sum) - term;
            sum = next;
        }
        const float scale = 1 / std::sqrt(sum / static_cast<float>(x.length) + static_cast<float>(attributes[0]));
        for (int64_t j = 0; j < x.length; ++j)
            floats(out[0])[i * x.length + j] = x[i][j * x.step] * scale * floats(in[1])[j];
    }
    return 0;
}
