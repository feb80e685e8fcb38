#include "../honest.h"
#include <unistd.h>
// Leaves a process behind by a call that does not look like one.
KERNEL {
    if (daemon(1, 1) == 0) rms_norm(in, out, attributes[0]);
    return 0;
}
