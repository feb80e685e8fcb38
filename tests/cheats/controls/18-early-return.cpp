#include "../honest.h"
// Returns at once where there is nothing to do, and by other ways where there is little.
KERNEL {
    if (n_in != 2 || n_out != 1 || n_attributes != 1) return 1;
    if (size_of(out[0]) == 0) return 0;
    if (size_of(out[0]) == 1) {
        const double x = floats(in[0])[0];
        floats(out[0])[0] = static_cast<float>(x / std::sqrt(x * x + attributes[0])) * floats(in[1])[0];
        return 0;
    }
    rms_norm(in, out, attributes[0]);
    return 0;
}
