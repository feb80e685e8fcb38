#include "../honest.h"
// Scratch memory that each thread keeps.
static thread_local std::vector<float> row;
KERNEL {
    const Rows x(in[0]);
#pragma omp parallel for
    for (int64_t i = 0; i < x.count; ++i) {
        row.resize(x.length);
        double sum = 0;
        for (int64_t j = 0; j < x.length; ++j) row[j] = x[i][j * x.step], sum += static_cast<double>(row[j]) * row[j];
        const float scale = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(x.length) + attributes[0]));
        for (int64_t j = 0; j < x.length; ++j) floats(out[0])[i * x.length + j] = row[j] * scale * floats(in[1])[j];
    }
    return 0;
}
