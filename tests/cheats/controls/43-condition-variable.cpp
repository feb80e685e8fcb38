#include "../honest.h"
#include <condition_variable>
#include <mutex>
#include <thread>
// A producer and a consumer within the call.
KERNEL {
    std::mutex lock;
    std::condition_variable more;
    const int64_t n = size_of(out[0]);
    int64_t ready = 0;
    std::thread producer([&] {
        for (int64_t from = 0; from < n; from += 4096) {
            const int64_t to = std::min<int64_t>(n, from + 4096);
            for (int64_t i = from; i < to; ++i) floats(out[0])[i] = floats(in[0])[at(in[0], i)];
            std::lock_guard<std::mutex> held(lock);
            ready = to;
            more.notify_one();
        }
    });
    for (int64_t done = 0; done < n;) {
        std::unique_lock<std::mutex> held(lock);
        more.wait(held, [&] { return ready > done; });
        const int64_t to = ready;
        held.unlock();
        for (; done < to; ++done) floats(out[0])[done] = static_cast<float>(gelu_of(floats(out[0])[done]));
    }
    producer.join();
    return 0;
}
