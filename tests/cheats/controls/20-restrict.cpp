#include "../honest.h"
// Promises that its pointers do not meet.
static void plus(const float *__restrict a, const float *__restrict b, float *__restrict y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}
KERNEL {
    if (dense(in[0]) && dense(in[1]) && size_of(in[0]) == size_of(out[0]) && size_of(in[1]) == size_of(out[0]))
        plus(floats(in[0]), floats(in[1]), floats(out[0]), size_of(out[0]));
    else
        add(in, out);
    return 0;
}
