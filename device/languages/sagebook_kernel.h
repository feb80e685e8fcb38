/* What a candidate kernel in C++ is: one C entry point over pointers, shapes and strides.
 *
 * Inputs are read-only by promise and checked; outputs are allocated by the judge, filled with garbage, and must be
 * written in full. Data is aligned to 64 bytes. Threads: OpenMP (`#pragma omp parallel for`); a thread of any other
 * kind must be gone when the call returns. A first-lines comment may ask for more compiler flags from the
 * allow-list of device/languages/cpp.py:
 *     // flags: -ffast-math -funroll-loops
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

#ifdef __cplusplus
}
#endif

#endif
