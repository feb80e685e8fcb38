#include "../honest.h"
#include <cstdlib>
// Aligned arrays on the stack, as a static, and from the heap.
alignas(64) static float shared[1024];
KERNEL {
    const Rows x(in[0]);
    float *heap = static_cast<float *>(std::aligned_alloc(64, 4096));
    for (int64_t i = 0; i < x.count; ++i) {
        alignas(64) double lanes[8] = {};
        for (int64_t from = 0; from < x.length; from += 1024) {
            const int64_t count = std::min<int64_t>(1024, x.length - from);
            for (int64_t j = 0; j < count; ++j) shared[j] = heap[j] = x[i][(from + j) * x.step];
            for (int64_t j = 0; j < count; ++j) lanes[j % 8] += static_cast<double>(shared[j]) * heap[j];
        }
        double sum = 0;
        for (double lane : lanes) sum += lane;
        const float scale = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(x.length) + attributes[0]));
        for (int64_t j = 0; j < x.length; ++j)
            floats(out[0])[i * x.length + j] = x[i][j * x.step] * scale * floats(in[1])[j];
    }
    std::free(heap);
    return 0;
}
