#include "../honest.h"
// Hands back memory of its own with a shorter shape: a comparison that broadcasts or zips would pass it.
static std::vector<float> own;
static int64_t shape[1], strides[1] = {1};
KERNEL {
    own.assign(1, floats(in[0])[0]);
    shape[0] = 1;
    out[0].data = own.data(), out[0].ndim = 1, out[0].shape = shape, out[0].strides = strides;
    return 0;
}
