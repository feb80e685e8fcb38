#include "../honest.h"
#include <stdexcept>
// Takes its general way by an exception where a fast one does not apply, and catches it.
static void fast(const sb_tensor *in, sb_tensor *out) {
    if (!dense(in[0])) throw std::invalid_argument("strided");
    for (int64_t i = 0, n = size_of(out[0]); i < n; ++i) floats(out[0])[i] = static_cast<float>(gelu_of(floats(in[0])[i]));
}
KERNEL {
    try {
        fast(in, out);
    } catch (const std::invalid_argument &) {
        gelu(in, out);
    }
    return 0;
}
