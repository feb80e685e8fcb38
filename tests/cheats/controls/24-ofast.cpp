// flags: -Ofast -fno-math-errno
#include "../honest.h"
// The compiler's fastest level.
KERNEL {
    rms_norm(in, out, attributes[0]);
    return 0;
}
