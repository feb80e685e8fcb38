#include "../honest.h"
#include <map>
// Keeps a table that depends on the shape alone: where each element lies.
static std::map<std::vector<int64_t>, std::vector<int64_t>> places;
KERNEL {
    std::vector<int64_t> key(in[0].shape, in[0].shape + in[0].ndim);
    key.insert(key.end(), in[0].strides, in[0].strides + in[0].ndim);
    const int64_t n = size_of(out[0]);
    std::vector<int64_t> &place = places[key];
    if (place.empty()) {
        place.resize(n);
        for (int64_t i = 0; i < n; ++i) place[i] = at(in[0], i);
    }
    for (int64_t i = 0; i < n; ++i) floats(out[0])[i] = static_cast<float>(gelu_of(floats(in[0])[place[i]]));
    return 0;
}
