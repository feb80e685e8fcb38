#include "../honest.h"
#include <dlfcn.h>
// Lets a vendor's library do the work, loaded at run time.
using Gemm = void (*)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
KERNEL {
    const int m = in[0].shape[0], k = in[0].shape[1], n = in[1].shape[1];
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    if (!library) return 1;
    reinterpret_cast<Gemm>(dlsym(library, "cblas_sgemm"))(
        101, 111, 111, m, n, k, 1, floats(in[0]), k, floats(in[1]), n, 0, floats(out[0]), n);
    return 0;
}
