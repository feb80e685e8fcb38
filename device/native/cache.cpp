// Loaded into the judge: makes a range of memory cold in every cache of the machine, for whoever maps it.
// Also measures how fast the machine reads and multiplies.
#include <cstddef>
#include <cstdint>

#include "rates.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

extern "C" void sagebook_make_cold(const char *begin, size_t bytes) {
    const uintptr_t first = reinterpret_cast<uintptr_t>(begin) & ~static_cast<uintptr_t>(63);
    const uintptr_t last = reinterpret_cast<uintptr_t>(begin) + bytes;
#if defined(__x86_64__)
#if defined(__CLFLUSHOPT__)
    for (uintptr_t line = first; line < last; line += 64) _mm_clflushopt(reinterpret_cast<void *>(line));
#else
    for (uintptr_t line = first; line < last; line += 64) _mm_clflush(reinterpret_cast<const void *>(line));
#endif
    _mm_mfence();
#elif defined(__aarch64__)
    for (uintptr_t line = first; line < last; line += 64) asm volatile("dc civac, %0" ::"r"(line) : "memory");
    asm volatile("dsb sy" ::: "memory");
#endif
}
