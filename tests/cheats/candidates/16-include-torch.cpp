#include "../honest.h"
#include <torch/torch.h>
// Calls torch from C++.
KERNEL {
    const auto a = torch::from_blob(in[0].data, {in[0].shape[0], in[0].shape[1]});
    const auto b = torch::from_blob(in[1].data, {in[1].shape[0], in[1].shape[1]});
    const auto y = torch::matmul(a, b).contiguous();
    memcpy(out[0].data, y.data_ptr(), y.nbytes());
    return 0;
}
