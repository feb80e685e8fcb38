#include "../honest.h"
#include <sys/mman.h>
// Scratch memory straight from the operating system, given back at the end.
KERNEL {
    const size_t bytes = std::max<size_t>(4096, size_of(out[0]) * sizeof(float));
    void *room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return 1;
    sb_tensor scratch = out[0];
    scratch.data = room;
    softmax(in, &scratch);
    memcpy(out[0].data, room, size_of(out[0]) * sizeof(float));
    munmap(room, bytes);
    return 0;
}
