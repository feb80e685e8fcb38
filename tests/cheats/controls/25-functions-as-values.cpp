#include "../honest.h"
#include <functional>
#include <memory>
// Virtual functions, std::function, std::bind and lambdas.
struct Step {
    virtual ~Step() = default;
    virtual double apply(double x) const = 0;
};
struct Gelu : Step {
    double apply(double x) const override { return gelu_of(x); }
};
KERNEL {
    const std::unique_ptr<Step> step = std::make_unique<Gelu>();
    const std::function<double(double)> f = std::bind(&Step::apply, step.get(), std::placeholders::_1);
    for (int64_t i = 0, n = size_of(out[0]); i < n; ++i)
        floats(out[0])[i] = static_cast<float>(f(floats(in[0])[at(in[0], i)]));
    return 0;
}
