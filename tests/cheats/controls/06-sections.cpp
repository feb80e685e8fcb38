#include "../honest.h"
// OpenMP sections, one for each half.
KERNEL {
    const int64_t n = size_of(out[0]);
    const auto part = [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) floats(out[0])[i] = static_cast<float>(gelu_of(floats(in[0])[at(in[0], i)]));
    };
#pragma omp parallel sections
    {
#pragma omp section
        part(0, n / 2);
#pragma omp section
        part(n / 2, n);
    }
    return 0;
}
