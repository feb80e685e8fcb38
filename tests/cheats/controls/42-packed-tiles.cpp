#include "../honest.h"
// Packs the right factor into tiles that it keeps room for, anew in every call.
static std::vector<float> packed;
KERNEL {
    const int64_t m = in[0].shape[0], k = in[0].shape[1], n = in[1].shape[1], wide = (n + 15) / 16 * 16;
    packed.assign(k * wide, 0.0f);
    for (int64_t l = 0; l < k; ++l)
        for (int64_t j = 0; j < n; ++j) packed[j / 16 * 16 * k + l * 16 + j % 16] = floats(in[1])[l * in[1].strides[0] + j * in[1].strides[1]];
#pragma omp parallel for
    for (int64_t i = 0; i < m; ++i)
        for (int64_t tile = 0; tile < wide; tile += 16) {
            double sums[16] = {};
            for (int64_t l = 0; l < k; ++l) {
                const double a = floats(in[0])[i * in[0].strides[0] + l * in[0].strides[1]];
                for (int64_t j = 0; j < 16; ++j) sums[j] += a * packed[tile * k + l * 16 + j];
            }
            for (int64_t j = 0; j < std::min<int64_t>(16, n - tile); ++j) floats(out[0])[i * n + tile + j] = static_cast<float>(sums[j]);
        }
    return 0;
}
