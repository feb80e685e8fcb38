#include "../honest.h"
#include <csetjmp>
// Leaves a deep loop by a long jump.
static std::jmp_buf back;
static void check(const sb_tensor &t) {
    if (!dense(t)) std::longjmp(back, 1);
}
KERNEL {
    if (setjmp(back) == 0) check(in[0]);
    add(in, out);
    return 0;
}
