#include "../honest.h"
#include <thread>
#include <vector>
// Threads of its own that take turns by OpenMP's lock, which alone makes no pool; all of them are joined.
KERNEL {
    const Rows x(in[0]);
    int64_t next = 0;
    const auto rows = [&] {
        for (;;) {
            int64_t i;
#pragma omp critical
            i = next++;
            if (i >= x.count) return;
            double sum = 0;
            for (int64_t j = 0; j < x.length; ++j) sum += static_cast<double>(x[i][j * x.step]) * x[i][j * x.step];
            const float scale = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(x.length) + attributes[0]));
            for (int64_t j = 0; j < x.length; ++j)
                floats(out[0])[i * x.length + j] = x[i][j * x.step] * scale * floats(in[1])[j];
        }
    };
    std::vector<std::thread> all;
    for (int t = 0; t < 3; ++t) all.emplace_back(rows);
    for (std::thread &each : all) each.join();
    return 0;
}
