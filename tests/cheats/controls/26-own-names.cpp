#include "../honest.h"
// Methods and functions of its own that happen to be called like those of the operating system.
struct Visitor {
    double value = 0;
    void accept(double x) { value = gelu_of(x); }
    Visitor clone() const { return *this; }
    double listen() const { return value; }
};
KERNEL {
    Visitor visitor;
    Visitor *pointer = &visitor;
    for (int64_t i = 0, n = size_of(out[0]); i < n; ++i) {
        pointer->accept(floats(in[0])[at(in[0], i)]);
        floats(out[0])[i] = static_cast<float>(visitor.clone().listen());
    }
    return 0;
}
