#include "../honest.h"
// Answers an int64 question with int32 numbers, and says so in the output's description.
KERNEL {
    const Rows x(in[0]);
    int32_t *y = static_cast<int32_t *>(out[0].data);
    for (int64_t i = 0; i < x.count; ++i) {
        int64_t best = 0;
        for (int64_t j = 0; j < x.length; ++j)
            if (!(x[i][j * x.step] <= x[i][best * x.step]) && !std::isnan(x[i][best * x.step])) best = j;
        y[i] = static_cast<int32_t>(best);
    }
    out[0].dtype = SB_INT32;
    return 0;
}
