#include "../honest.h"
#include <thread>
// One part on a thread of its own beside a parallel region for the rest; the thread is joined, the pool may sleep on.
KERNEL {
    const int64_t n = size_of(out[0]), middle = n / 3;
    const auto one = [&](int64_t i) { floats(out[0])[i] = static_cast<float>(gelu_of(floats(in[0])[at(in[0], i)])); };
    std::thread other([&] {
        for (int64_t i = 0; i < middle; ++i) one(i);
    });
#pragma omp parallel for
    for (int64_t i = middle; i < n; ++i) one(i);
    other.join();
    return 0;
}
