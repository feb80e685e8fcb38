#include "../honest.h"
// Computes everything twice and keeps the second answer.
KERNEL {
    rms_norm(in, out, attributes[0]);
    memset(out[0].data, 0, size_of(out[0]) * sizeof(float));
    rms_norm(in, out, attributes[0]);
    return 0;
}
