#include "../honest.h"
#include <atomic>
// Threads take rows from a common counter; which takes which is open, the answer is not.
KERNEL {
    const Rows x(in[0]);
    std::atomic<int64_t> next{0};
#pragma omp parallel
    for (int64_t i; (i = next.fetch_add(1)) < x.count;) {
        double sum = 0;
        for (int64_t j = 0; j < x.length; ++j) sum += static_cast<double>(x[i][j * x.step]) * x[i][j * x.step];
        const float scale = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(x.length) + attributes[0]));
        for (int64_t j = 0; j < x.length; ++j)
            floats(out[0])[i * x.length + j] = x[i][j * x.step] * scale * floats(in[1])[j];
    }
    return 0;
}
