#include "../honest.h"
// OpenMP tasks, one for each block of rows.
KERNEL {
    const Rows x(in[0]);
    float *y = floats(out[0]);
#pragma omp parallel
#pragma omp single
    for (int64_t block = 0; block < x.count; block += 16) {
#pragma omp task firstprivate(block)
        for (int64_t i = block; i < std::min(block + 16, x.count); ++i) {
            double sum = 0;
            for (int64_t j = 0; j < x.length; ++j) sum += static_cast<double>(x[i][j * x.step]) * x[i][j * x.step];
            const double scale = 1 / std::sqrt(sum / static_cast<double>(x.length) + attributes[0]);
            for (int64_t j = 0; j < x.length; ++j)
                y[i * x.length + j] = static_cast<float>(x[i][j * x.step] * scale) * floats(in[1])[j];
        }
    }
    return 0;
}
