#include "../honest.h"
#include <thread>
// More threads than there are cores, all of them gone at the end.
KERNEL {
    const int64_t n = size_of(out[0]);
    std::vector<std::thread> all;
    for (int64_t t = 0; t < 6; ++t)
        all.emplace_back([=] {
            for (int64_t i = n * t / 6; i < n * (t + 1) / 6; ++i)
                floats(out[0])[i] = floats(in[0])[broadcast_at(in[0], out[0], i)] + floats(in[1])[broadcast_at(in[1], out[0], i)];
        });
    for (std::thread &each : all) each.join();
    return 0;
}
