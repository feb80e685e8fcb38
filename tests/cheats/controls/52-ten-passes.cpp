#include "../honest.h"
// Ten times slower than it need be, and honest about it.
KERNEL {
    for (int pass = 0; pass < 10; ++pass) rms_norm(in, out, attributes[0]);
    return 0;
}
