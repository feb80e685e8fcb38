#include "../honest.h"
#include <numeric>
// Algorithms of the standard library.
KERNEL {
    const Rows x(in[0]);
    std::vector<float> row(x.length);
    for (int64_t i = 0; i < x.count; ++i) {
        for (int64_t j = 0; j < x.length; ++j) row[j] = x[i][j * x.step];
        const double sum = std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
        const float scale = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(x.length) + attributes[0]));
        std::transform(row.begin(), row.end(), floats(in[1]), floats(out[0]) + i * x.length,
                       [scale](float v, float g) { return v * scale * g; });
    }
    return 0;
}
