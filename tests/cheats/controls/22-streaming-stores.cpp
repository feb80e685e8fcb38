#include "../honest.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif
// Writes past the cache where the output is aligned.
KERNEL {
#if defined(__x86_64__)
    const int64_t n = size_of(out[0]);
    if (dense(in[0]) && dense(in[1]) && size_of(in[0]) == n && size_of(in[1]) == n && reinterpret_cast<uintptr_t>(out[0].data) % 16 == 0) {
        const float *a = floats(in[0]), *b = floats(in[1]);
        float *y = floats(out[0]);
        int64_t i = 0;
        for (; i + 4 <= n; i += 4) _mm_stream_ps(y + i, _mm_add_ps(_mm_loadu_ps(a + i), _mm_loadu_ps(b + i)));
        for (; i < n; ++i) y[i] = a[i] + b[i];
        _mm_sfence();
        return 0;
    }
#endif
    add(in, out);
    return 0;
}
