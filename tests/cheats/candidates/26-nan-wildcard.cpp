#include "../honest.h"
// Writes NaN everywhere: a comparison by <= or with equal_nan may let it pass.
KERNEL {
    std::fill_n(floats(out[0]), size_of(out[0]), std::nanf(""));
    return 0;
}
