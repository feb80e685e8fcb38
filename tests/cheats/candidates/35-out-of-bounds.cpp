#include "../honest.h"
// Writes whole vectors of eight, also where the output ends in between.
KERNEL {
    rms_norm(in, out, attributes[0]);
    const int64_t n = size_of(out[0]);
    for (int64_t i = n; i % 8; ++i) floats(out[0])[i] = 0;
    return 0;
}
