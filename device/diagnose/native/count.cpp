// Calls one kernel once, with tensors read from a file: what runs under an instrument that simulates the processor.
//   count LIBRARY CALL
// CALL holds 64-bit words: inputs, outputs, attributes; for each tensor its dtype, bytes, axes, shape and strides; the
// attributes; then the inputs' bytes.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../../languages/sagebook_kernel.h"

int main(int argc, char **argv) {
    if (argc != 3) return 120;
    FILE *file = fopen(argv[2], "rb");
    if (!file) return 121;
    const auto word = [file] {
        int64_t value = 0;
        if (fread(&value, sizeof value, 1, file) != 1) exit(121);
        return value;
    };
    const int64_t n_in = word(), n_out = word(), n_attr = word();
    std::vector<sb_tensor> tensors(n_in + n_out);
    std::vector<std::vector<int64_t>> sizes(tensors.size());
    std::vector<size_t> bytes;
    for (size_t i = 0; i < tensors.size(); ++i) {
        sb_tensor &t = tensors[i];
        t.dtype = static_cast<int32_t>(word());
        bytes.push_back(static_cast<size_t>(word()));
        t.ndim = word();
        for (int64_t k = 0; k < 2 * t.ndim; ++k) sizes[i].push_back(word());
        t.shape = sizes[i].data();
        t.strides = sizes[i].data() + t.ndim;
        t.data = aligned_alloc(4096, (bytes.back() + 8191) / 4096 * 4096);
        if (!t.data) return 121;
    }
    std::vector<double> attributes;
    for (int64_t i = 0; i < n_attr; ++i) {
        const int64_t bits = word();
        double value;
        memcpy(&value, &bits, sizeof value);
        attributes.push_back(value);
    }
    for (int64_t i = 0; i < n_in; ++i)
        if (fread(tensors[i].data, 1, bytes[i], file) != bytes[i]) return 121;
    fclose(file);
    setenv("OMP_NUM_THREADS", "1", 1);  // read when the library brings OpenMP; only this thread's instructions are counted
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return 122;
    const auto entry = reinterpret_cast<decltype(&sagebook_kernel)>(dlsym(library, "sagebook_kernel"));
    if (!entry) return 122;
    return entry(tensors.data(), n_in, tensors.data() + n_in, n_out, attributes.data(), n_attr) == 0 ? 0 : 1;
}
