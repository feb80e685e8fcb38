#include "../honest.h"
#include <array>
// A table that is made while the library is being loaded, and one that is made by the compiler.
struct Made {
    std::vector<double> factors;
    Made() : factors(16) {
        for (int i = 0; i < 16; ++i) factors[i] = std::sqrt(i + 1.0);
    }
};
static const Made made;
static constexpr std::array<int, 4> order = {2, 0, 3, 1};
KERNEL {
    for (int quarter : order) {
        const int64_t n = size_of(out[0]);
        for (int64_t i = n * quarter / 4; i < n * (quarter + 1) / 4; ++i)
            floats(out[0])[i] = static_cast<float>(gelu_of(floats(in[0])[at(in[0], i)]) * (made.factors[3] - 1));
    }
    return 0;
}
