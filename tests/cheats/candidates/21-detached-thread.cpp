#include "../honest.h"
#include <chrono>
#include <thread>
// Leaves a thread behind that finishes the last row after the clock has stopped.
KERNEL {
    rms_norm(in, out, attributes[0]);
    const int64_t n = size_of(out[0]);
    const float value = floats(out[0])[n - 1];
    float *last = floats(out[0]) + n - 1;
    *last = 0;
    std::thread([=] {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        *last = value;
    }).detach();
    return 0;
}
