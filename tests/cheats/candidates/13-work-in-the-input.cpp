#include "../honest.h"
// Gives the right answer, and uses the input as scratch memory for it.
KERNEL {
    rms_norm(in, out, attributes[0]);
    for (int64_t i = 0, n = size_of(in[0]); i < n; ++i) floats(in[0])[at(in[0], i)] *= 0.5f;
    return 0;
}
