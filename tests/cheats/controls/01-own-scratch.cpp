#include "../honest.h"
// Works in a buffer of its own, in place, and copies the result.
static std::vector<float> scratch;
KERNEL {
    const int64_t n = size_of(out[0]);
    scratch.resize(n);
    for (int64_t i = 0; i < n; ++i) scratch[i] = floats(in[0])[at(in[0], i)];
    const Rows y(out[0]);
    for (int64_t i = 0; i < y.count; ++i) {
        float *row = scratch.data() + i * y.length;
        double sum = 0;
        for (int64_t j = 0; j < y.length; ++j) sum += static_cast<double>(row[j]) * row[j];
        const float scale = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(y.length) + attributes[0]));
        for (int64_t j = 0; j < y.length; ++j) row[j] *= scale * floats(in[1])[j];
    }
    memcpy(out[0].data, scratch.data(), n * sizeof(float));
    return 0;
}
