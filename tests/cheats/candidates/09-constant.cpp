#include "../honest.h"
// Fills the output with one number: right wherever the task collapses to a constant.
KERNEL {
    std::fill_n(floats(out[0]), size_of(out[0]), 1.0f);
    return 0;
}
