#include "../honest.h"
#include <future>
// Futures that are waited for.
KERNEL {
    const int64_t n = size_of(out[0]);
    const auto part = [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i)
            floats(out[0])[i] = floats(in[0])[broadcast_at(in[0], out[0], i)] + floats(in[1])[broadcast_at(in[1], out[0], i)];
    };
    auto first = std::async(std::launch::async, part, 0, n / 2);
    part(n / 2, n);
    first.get();
    return 0;
}
