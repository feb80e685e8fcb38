/* The entry point of a Sagebook candidate kernel, language `cpp`.
 *
 * A candidate is one C++17 source that includes this header and defines `sagebook_kernel`. It is compiled with
 *   g++ -std=c++17 -O3 -march=native -fopenmp -shared -fPIC
 * and may ask for more flags from the allow-list in a comment on its first lines:
 *   // flags: -ffast-math -funroll-loops
 * OMP_NUM_THREADS tells how many threads may run.
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
  SB_BFLOAT16 = 8
};

/* `data` points at element [0, 0, ...]. `shape` and `strides` hold `ndim` numbers each; strides count elements, not
 * bytes, and a stride of an input may be 0 (an expanded axis). An input is read only. */
typedef struct {
  void *data;
  int64_t ndim;
  const int64_t *shape;
  const int64_t *strides;
  int32_t dtype;
} sb_tensor;

/* Fill the outputs, which are allocated already, from the inputs. Attributes come in the operator's declared order.
 * Return 0 when the outputs hold the result; any other number is the kernel's own error. */
#ifdef __cplusplus
extern "C"
#endif
int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                    const double *attributes, int64_t n_attributes);

#endif /* SAGEBOOK_KERNEL_H */
