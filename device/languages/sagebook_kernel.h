/* What a candidate kernel in C++ is: one C entry point over pointers, shapes and strides.
 *
 * Inputs are read-only by promise and checked; outputs are allocated by the judge, filled with garbage, and must be
 * written in full. Data is aligned to 64 bytes. Threads: OpenMP (`#pragma omp parallel for`); a thread of any other
 * kind must be gone when the call returns. A first-lines comment may ask for more compiler flags from the
 * allow-list of device/languages/cpp.py:
 *     // flags: -ffast-math -funroll-loops
 * SB_DUMP names an intermediate result for `sagebook device diagnose`; in what is verified and timed it is nothing.
 */
#ifndef SAGEBOOK_KERNEL_H
#define SAGEBOOK_KERNEL_H

#include <stdint.h>

enum {
    SB_FLOAT32 = 0,
    SB_FLOAT64 = 1,
    SB_INT32 = 2,
    SB_INT64 = 3,
    SB_INT8 = 4,
    SB_UINT8 = 5,
    SB_BOOL = 6,
    SB_FLOAT16 = 7,
    SB_BFLOAT16 = 8,
    SB_COMPLEX64 = 9 /* real and imaginary part, two float32 */
};

typedef struct {
    void *data;
    int64_t ndim;
    const int64_t *shape;
    const int64_t *strides; /* in elements */
    int32_t dtype;          /* one of SB_... */
} sb_tensor;

#ifdef __cplusplus
extern "C" {
#endif

/* Returns 0 when done; anything else is the kernel's own error and fails the case. */
int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                    const double *attributes, int64_t n_attributes);

#ifdef SAGEBOOK_DIAGNOSE
void sagebook_dump(const char *name, const void *data, int64_t count, int32_t dtype, int64_t first);
#define SB_DUMP(name, data, count, dtype) sagebook_dump(name, data, count, dtype, -1)
#define SB_DUMP_AT(name, data, count, dtype, first) sagebook_dump(name, data, count, dtype, first)
#else
/* `count` dense elements of type SB_...: the next ones of the tensor of that name, or those from element `first` on. */
#define SB_DUMP(name, data, count, dtype) ((void)0)
#define SB_DUMP_AT(name, data, count, dtype, first) ((void)0)
#endif

#ifdef __cplusplus
}
#endif

#endif
