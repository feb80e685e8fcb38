// flags: -ffast-math -funroll-loops
#include "../honest.h"
// Asks for fast mathematics, and for loops that are unrolled.
KERNEL {
    softmax(in, out);
    return 0;
}
