#include "../honest.h"
// A loop entered in its middle, and a goto.
KERNEL {
    const int64_t n = size_of(out[0]);
    int64_t i = 0, turns = (n + 3) / 4;
    const auto step = [&] {
        floats(out[0])[i] = floats(in[0])[broadcast_at(in[0], out[0], i)] + floats(in[1])[broadcast_at(in[1], out[0], i)];
        ++i;
    };
    if (n == 0) goto done;
    switch (n % 4) {
        case 0:
            do {
                step();
                [[fallthrough]];
        case 3:
                step();
                [[fallthrough]];
        case 2:
                step();
                [[fallthrough]];
        case 1:
                step();
            } while (--turns > 0);
    }
done:
    return 0;
}
