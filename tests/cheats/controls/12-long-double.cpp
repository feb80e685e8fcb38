#include "../honest.h"
// Sums in long double, the processor's oldest format.
KERNEL {
    const Rows x(in[0]);
#pragma omp parallel for
    for (int64_t i = 0; i < x.count; ++i) {
        long double sum = 0;
        for (int64_t j = 0; j < x.length; ++j) sum += static_cast<long double>(x[i][j * x.step]) * x[i][j * x.step];
        const long double scale = 1 / std::sqrt(sum / x.length + attributes[0]);
        for (int64_t j = 0; j < x.length; ++j)
            floats(out[0])[i * x.length + j] = static_cast<float>(x[i][j * x.step] * scale * floats(in[1])[j]);
    }
    return 0;
}
