#include "../honest.h"
#include <thread>
// All threads add to one sum without a lock: right only when they happen not to meet.
KERNEL {
    const Rows x(in[0]);
    for (int64_t i = 0; i < x.count; ++i) {
        volatile double sum = 0;
        const float *row = x[i];
#pragma omp parallel for schedule(static, 1)
        for (int64_t j = 0; j < x.length; ++j) {
            const double before = sum;
            if (j % 256 < 2) std::this_thread::yield();
            sum = before + static_cast<double>(row[j * x.step]) * row[j * x.step];
        }
        const float scale = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(x.length) + attributes[0]));
        for (int64_t j = 0; j < x.length; ++j)
            floats(out[0])[i * x.length + j] = row[j * x.step] * scale * floats(in[1])[j];
    }
    return 0;
}
