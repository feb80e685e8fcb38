#include "../honest.h"
// Passes through numbers below the smallest normal one and back.
KERNEL {
    for (int64_t i = 0, n = size_of(out[0]); i < n; ++i) {
        volatile double tiny = floats(in[0])[broadcast_at(in[0], out[0], i)] * 0x1p-1040;
        volatile double back = tiny * 0x1p+520 * 0x1p+520;
        const float a = floats(in[0])[broadcast_at(in[0], out[0], i)], b = floats(in[1])[broadcast_at(in[1], out[0], i)];
        floats(out[0])[i] = std::abs(back - a) < 1 ? a + b : b;
    }
    return 0;
}
