#include "../honest.h"
#include <cstdio>
#include <iostream>
// Prints what it does.
KERNEL {
    std::fprintf(stderr, "%lld elements\n", static_cast<long long>(size_of(out[0])));
    std::cout << "working" << std::endl;
    softmax(in, out);
    return 0;
}
