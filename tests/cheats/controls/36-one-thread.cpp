#include "../honest.h"
#include <omp.h>
// Chooses one thread for small problems, and puts the number back.
KERNEL {
    const int before = omp_get_max_threads();
    if (size_of(out[0]) < 10000) omp_set_num_threads(1);
    softmax(in, out);
    omp_set_num_threads(before);
    return 0;
}
