#include "../honest.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif
// Lets the processor flush tiny numbers while it works.
KERNEL {
#if defined(__x86_64__)
    const unsigned before = _mm_getcsr();
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
#endif
    softmax(in, out);
#if defined(__x86_64__)
    _mm_setcsr(before);
#endif
    return 0;
}
