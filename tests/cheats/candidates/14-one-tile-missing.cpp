#include "../honest.h"
// Leaves out one tile of 16 elements in the middle of a large output.
KERNEL {
    const int64_t n = size_of(out[0]);
    float saved[16];
    if (n > 100000) memcpy(saved, floats(out[0]) + n / 2, sizeof saved);
    rms_norm(in, out, attributes[0]);
    if (n > 100000) memcpy(floats(out[0]) + n / 2, saved, sizeof saved);
    return 0;
}
