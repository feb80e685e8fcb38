#include "../honest.h"
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>
// Allocates and frees in many ways.
KERNEL {
    const Rows x(in[0]);
    std::map<int64_t, std::unique_ptr<float[]>> rows;
    std::deque<double> sums;
    for (int64_t i = 0; i < x.count; ++i) {
        rows[i].reset(new float[x.length]);
        double sum = 0;
        for (int64_t j = 0; j < x.length; ++j) rows[i][j] = x[i][j * x.step], sum += static_cast<double>(rows[i][j]) * rows[i][j];
        sums.push_back(sum);
    }
    double *scales = static_cast<double *>(malloc(sums.size() * sizeof(double)));
    for (size_t i = 0; i < sums.size(); ++i) scales[i] = 1 / std::sqrt(sums[i] / static_cast<double>(x.length) + attributes[0]);
    for (int64_t i = 0; i < x.count; ++i)
        for (int64_t j = 0; j < x.length; ++j)
            floats(out[0])[i * x.length + j] = static_cast<float>(rows[i][j] * scales[i] * floats(in[1])[j]);
    free(scales);
    return 0;
}
