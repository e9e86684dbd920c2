// The negative log-likelihood of classes, and its gradient.
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/index/indices.h"
#include "kiln/backend/cpu/operand.h"

namespace kiln {
namespace {

constexpr const char* kOp = "nll_loss";

// f(place in [N, P], place of its class in [N, C, P], weight of the class) for all that count, and
// skip(place in [N, P]) for those of the class `ignored`.
template <class T, class F, class Skip>
void for_each_class(const HostHandle& classes, int64_t count, const T* weight, int64_t ignored, F f,
                    Skip skip) {
  const auto* index = classes->data_as<const int64_t>();
  const int64_t places = classes->shape()[1];
  cpu::IndexCheck check(count);
  parallel_for(classes->numel(), kGrain / 4, [&](int64_t begin, int64_t end) {
    int64_t example = begin / places, place = begin % places;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t y = index[i];
      if (y == ignored) {
        skip(i);
      } else {
        if (!check.fine(y)) return;
        f(i, (example * count + y) * places + place, weight == nullptr ? T(1) : weight[y]);
      }
      if (++place == places) {
        place = 0;
        ++example;
      }
    }
  });
  check.finish(kOp);
}

template <class T>
HostHandle loss_of(const HostHandle& x, const HostHandle& classes, const T* weight,
                   int64_t ignored) {
  HostHandle out = host::empty(classes->shape(), x->dtype(), x->device());
  const T* from = x->data_as<const T>();
  T* to = out->data_as<T>();
  for_each_class(
      classes, x->shape()[1], weight, ignored,
      [&](int64_t i, int64_t at, T w) { to[i] = -from[at] * w; }, [&](int64_t i) { to[i] = T(0); });
  return out;
}

template <class T>
HostHandle gradient_of(const HostHandle& g, const HostHandle& classes, const T* weight,
                       int64_t count, int64_t ignored) {
  const Shape& places = classes->shape();
  HostHandle out =
      CpuOps::float_full(Shape{places[0], count, places[1]}, 0.0, g->dtype(), g->device());
  const T* from = g->data_as<const T>();
  T* to = out->data_as<T>();
  for_each_class(
      classes, count, weight, ignored, [&](int64_t i, int64_t at, T w) { to[at] = -from[i] * w; },
      [](int64_t) {});
  return out;
}

}  // namespace

HostHandle CpuOps::float_nll_loss(Arg<HostHandle> x, Arg<HostHandle> classes,
                                  const HostHandle* weight, int64_t ignored) {
  const DType dtype = x.get()->dtype();
  if (cpu::is_half(dtype)) {
    const cpu::OptionalOperand w(weight, cpu::widened);
    return cpu::narrowed(float_nll_loss(cpu::widened(x), classes, w.get(), ignored), dtype);
  }
  const cpu::OptionalOperand w(weight, cpu::contiguous);
  const HostHandle from = cpu::contiguous(x.get()), index = cpu::contiguous(classes.get());
  return dtype == DType::f64 ? loss_of(from, index, w.data<double>(), ignored)
                             : loss_of(from, index, w.data<float>(), ignored);
}

HostHandle CpuOps::float_nll_loss_backward(Arg<HostHandle> g, Arg<HostHandle> classes,
                                           const HostHandle* weight, int64_t count,
                                           int64_t ignored) {
  const DType dtype = g.get()->dtype();
  if (cpu::is_half(dtype)) {
    const cpu::OptionalOperand w(weight, cpu::widened);
    return cpu::narrowed(float_nll_loss_backward(cpu::widened(g), classes, w.get(), count, ignored),
                         dtype);
  }
  const cpu::OptionalOperand w(weight, cpu::contiguous);
  const HostHandle from = cpu::contiguous(g.get()), index = cpu::contiguous(classes.get());
  return dtype == DType::f64 ? gradient_of(from, index, w.data<double>(), count, ignored)
                             : gradient_of(from, index, w.data<float>(), count, ignored);
}

}  // namespace kiln
