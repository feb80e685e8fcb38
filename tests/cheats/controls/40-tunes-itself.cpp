#include "../honest.h"
#include <omp.h>
// Tries two block sizes in its first calls, by the clock, and keeps the quicker; both give the same bytes.
static int64_t blocks[2] = {8, 64};
static double took[2] = {1e9, 1e9};
static int64_t calls = 0;
KERNEL {
    const Rows x(in[0]);
    const int64_t choice = calls < 4 ? calls % 2 : took[1] < took[0];
    const double begin = omp_get_wtime();
    const int64_t block = blocks[choice];
#pragma omp parallel for
    for (int64_t from = 0; from < x.count; from += block)
        for (int64_t i = from; i < std::min(from + block, x.count); ++i) {
            double sum = 0;
            for (int64_t j = 0; j < x.length; ++j) sum += static_cast<double>(x[i][j * x.step]) * x[i][j * x.step];
            const float scale = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(x.length) + attributes[0]));
            for (int64_t j = 0; j < x.length; ++j)
                floats(out[0])[i * x.length + j] = x[i][j * x.step] * scale * floats(in[1])[j];
        }
    if (calls++ < 4) took[choice] = std::min(took[choice], omp_get_wtime() - begin);
    return 0;
}
