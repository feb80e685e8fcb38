#include "../honest.h"
#include <condition_variable>
#include <mutex>
#include <thread>
// OpenMP does the work; one thread more, not of its pool, waits on a condition that nobody ever brings about.
static std::mutex lock;
static std::condition_variable never;
KERNEL {
    rms_norm(in, out, attributes[0]);
    static bool started = false;
    if (!started)
        std::thread([] {
            std::unique_lock<std::mutex> held(lock);
            never.wait(held, [] { return false; });
        }).detach();
    started = true;
    return 0;
}
