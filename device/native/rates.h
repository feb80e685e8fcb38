// How fast plain code reads memory and multiplies on this machine. The judge takes the best of many tries.
#pragma once

#include <time.h>

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace rates {

typedef float Vector __attribute__((vector_size(64), aligned(4)));

// Processor time of this thread: a thread that waits for a core is no slower for it.
inline double seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Seconds of the thread that needs most, from the moment at which all of them stand ready.
template <class Work>
double together(int threads, const Work &work) {
    std::atomic<int> ready{0};
    std::atomic<bool> go{false};
    std::vector<double> took(static_cast<size_t>(threads));
    std::vector<std::thread> all;
    const auto timed = [&](int t) {
        const double begin = seconds();
        work(t);
        took[static_cast<size_t>(t)] = seconds() - begin;
    };
    for (int t = 1; t < threads; ++t)
        all.emplace_back([&, t] {
            ++ready;
            while (!go.load()) {
            }
            timed(t);
        });
    while (ready.load() < threads - 1) std::this_thread::yield();
    go = true;
    timed(0);
    for (std::thread &each : all) each.join();
    double most = took[0];
    for (double each : took) most = each > most ? each : most;
    return most;
}

}  // namespace rates

// Seconds in which `threads` threads together read `bytes` bytes, `passes` times over.
extern "C" double sagebook_read_seconds(const char *data, size_t bytes, int threads, int passes) {
    std::atomic<int> odd{0};
    return rates::together(threads, [&](int t) {
        const size_t share = bytes / static_cast<size_t>(threads) / 256 * 256;
        rates::Vector a = {}, b = {}, c = {}, d = {};
        for (int pass = 0; pass < passes; ++pass) {
            const rates::Vector *from = reinterpret_cast<const rates::Vector *>(data + share * static_cast<size_t>(t));
            for (size_t i = 0; i < share / sizeof(rates::Vector); i += 4)
                a += from[i], b += from[i + 1], c += from[i + 2], d += from[i + 3];
            asm volatile("" ::: "memory");
        }
        const rates::Vector sum = a + b + c + d;
        if (sum[0] == 0.5f) ++odd;
    });
}

// Seconds in which `threads` threads do `turns` x 12 x 16 fused multiply-adds of floats each.
extern "C" double sagebook_multiply_seconds(int threads, long turns) {
    std::atomic<int> odd{0};
    return rates::together(threads, [&](int t) {
        rates::Vector sums[12] = {}, factor = {};
        factor += 0.999f + 1e-6f * static_cast<float>(t);
        for (long i = 0; i < turns; ++i)
#pragma GCC unroll 12
            for (int k = 0; k < 12; ++k) sums[k] = sums[k] * factor + factor;
        rates::Vector sum = {};
#pragma GCC unroll 12
        for (int k = 0; k < 12; ++k) sum += sums[k];
        if (sum[0] == 0.5f) ++odd;
    });
}
