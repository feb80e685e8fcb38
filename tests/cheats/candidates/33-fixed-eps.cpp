#include "../honest.h"
// Has the usual eps written in, whatever the attribute says.
KERNEL {
    rms_norm(in, out, 1e-6);
    return 0;
}
