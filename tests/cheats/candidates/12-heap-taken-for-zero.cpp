#include "../honest.h"
#include <cstdlib>
// Adds up in memory that was never set: a block as large as this comes from fresh pages, which happen to be zero.
KERNEL {
    const Rows x(in[0]);
    double *sums = static_cast<double *>(malloc(std::max<size_t>(40 << 20, x.count * sizeof(double))));
    if (!sums) return 1;
    for (int64_t i = 0; i < x.count; ++i) {
        for (int64_t j = 0; j < x.length; ++j) sums[i] += static_cast<double>(x[i][j * x.step]) * x[i][j * x.step];
        const float scale = static_cast<float>(1 / std::sqrt(sums[i] / static_cast<double>(x.length) + attributes[0]));
        for (int64_t j = 0; j < x.length; ++j)
            floats(out[0])[i * x.length + j] = x[i][j * x.step] * scale * floats(in[1])[j];
    }
    free(sums);
    return 0;
}
