#include "../honest.h"
// Names put together by macros, as unrolled kernels do.
#define LANE(k) sum##k += static_cast<double>(row[(j + k) * x.step]) * row[(j + k) * x.step];
KERNEL {
    const Rows x(in[0]);
    for (int64_t i = 0; i < x.count; ++i) {
        const float *row = x[i];
        double sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
        int64_t j = 0;
        for (; j + 4 <= x.length; j += 4) {
            LANE(0) LANE(1) LANE(2) LANE(3)
        }
        for (; j < x.length; ++j) {
            LANE(0)
        }
        const double mean = (sum0 + sum1 + sum2 + sum3) / static_cast<double>(x.length);
        const float scale = static_cast<float>(1 / std::sqrt(mean + attributes[0]));
        for (j = 0; j < x.length; ++j) floats(out[0])[i * x.length + j] = row[j * x.step] * scale * floats(in[1])[j];
    }
    return 0;
}
