#include "../honest.h"
#include <cstdlib>
// Reads the number of threads from the environment, and the time of day for nothing.
KERNEL {
    const char *threads = std::getenv("OMP_NUM_THREADS");
    const int count = threads ? std::atoi(threads) : 1;
    const int64_t n = size_of(out[0]);
#pragma omp parallel for num_threads(count > 0 ? count : 1)
    for (int64_t i = 0; i < n; ++i) floats(out[0])[i] = static_cast<float>(gelu_of(floats(in[0])[at(in[0], i)]));
    return 0;
}
