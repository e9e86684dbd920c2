// Softmax cross-entropy of rows of logits with class indices, without ever storing probabilities.
#include <algorithm>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/norm/softmax_kernels.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/core/error.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace {

using cpu::softmax_kernels;

void check_targets(const int64_t* targets, int64_t rows, int64_t classes,
                   const CrossEntropyOptions& options) {
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t t = targets[r];
    if ((t < 0 || t >= classes) && t != options.ignore_index) [[unlikely]] {
      throw_error<IndexError>("cross_entropy: target out of range; got ", t, " in row ", r,
                              "; expected 0 to ", classes - 1, " or ignore_index ",
                              options.ignore_index);
    }
  }
}

int64_t rows_per_piece(int64_t classes) {
  return std::max<int64_t>(kGrain / 4 / std::max<int64_t>(classes, 1), 1);
}

// With s the smoothing: (1 - s) (lse - x[t]) + s / C sum_c (lse - x_c).
template <class T>
void run_cross_entropy(const T* x, const int64_t* targets, int64_t rows, int64_t classes,
                       const CrossEntropyOptions& options, T* loss, T* lse) {
  const auto& kernels = softmax_kernels<T>();
  const double s = options.label_smoothing;
  parallel_for(rows, rows_per_piece(classes), [&](int64_t begin, int64_t end) {
    kernels.logsumexp_rows(x + begin * classes, lse + begin, end - begin, classes);
    for (int64_t r = begin; r < end; ++r) {
      if (targets[r] == options.ignore_index) {
        loss[r] = T(0);
        continue;
      }
      const T* row = x + r * classes;
      T l = lse[r] - row[targets[r]];
      if (s > 0.0) {
        const double gaps = static_cast<double>(kernels.sum_of_gaps(row, lse[r], classes));
        l = static_cast<T>((1.0 - s) * static_cast<double>(l) +
                           s * gaps / static_cast<double>(classes));
      }
      loss[r] = l;
    }
  });
}

// g (softmax(x) - (1 - s) onehot(t) - s / C)
template <class T>
void run_cross_entropy_backward(const T* g, const T* x, const int64_t* targets, const T* lse,
                                int64_t rows, int64_t classes, const CrossEntropyOptions& options,
                                T* dx) {
  const auto& kernels = softmax_kernels<T>();
  const double s = options.label_smoothing;
  const T base = static_cast<T>(s / static_cast<double>(classes));
  const T hit = static_cast<T>(1.0 - s);
  parallel_for(rows, rows_per_piece(classes), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T* to = dx + r * classes;
      if (targets[r] == options.ignore_index) {
        std::fill_n(to, classes, T(0));
        continue;
      }
      kernels.cross_entropy_backward_row(x + r * classes, lse[r], g[r], base, to, classes);
      to[targets[r]] -= g[r] * hit;
    }
  });
}

}  // namespace

std::pair<HostHandle, HostHandle> CpuOps::float_cross_entropy(Arg<HostHandle> logits,
                                                              Arg<HostHandle> targets,
                                                              const CrossEntropyOptions& options) {
  const DType dtype = logits.get()->dtype();
  if (cpu::is_half(dtype)) {
    auto [loss, lse] = float_cross_entropy(cpu::widened(logits), targets, options);
    return {cpu::narrowed(std::move(loss), dtype), cpu::narrowed(std::move(lse), dtype)};
  }
  const HostHandle x = cpu::contiguous(logits.get());
  const HostHandle t = cpu::contiguous(targets.get());
  const int64_t rows = x->shape()[0];
  const int64_t classes = x->shape()[1];
  const auto* indices = t->data_as<const int64_t>();
  check_targets(indices, rows, classes, options);
  HostHandle loss = host::empty(Shape{rows}, dtype, x->device());
  HostHandle lse = host::empty(Shape{rows}, dtype, x->device());
  if (dtype == DType::f64) {
    run_cross_entropy(x->data_as<const double>(), indices, rows, classes, options,
                      loss->data_as<double>(), lse->data_as<double>());
  } else {
    run_cross_entropy(x->data_as<const float>(), indices, rows, classes, options,
                      loss->data_as<float>(), lse->data_as<float>());
  }
  return {std::move(loss), std::move(lse)};
}

HostHandle CpuOps::float_cross_entropy_backward(Arg<HostHandle> g, Arg<HostHandle> logits,
                                                Arg<HostHandle> targets, Arg<HostHandle> lse,
                                                const CrossEntropyOptions& options) {
  const DType dtype = logits.get()->dtype();
  if (cpu::is_half(dtype)) {
    return cpu::narrowed(float_cross_entropy_backward(cpu::widened(g), cpu::widened(logits),
                                                      targets, cpu::widened(lse), options),
                         dtype);
  }
  const HostHandle grad = cpu::contiguous(g.get());
  const HostHandle t = cpu::contiguous(targets.get());
  const HostHandle sums = cpu::contiguous(lse.get());
  const cpu::ReusableOperand x(logits);
  const int64_t rows = x.tensor().shape()[0];
  const int64_t classes = x.tensor().shape()[1];
  const auto* indices = t->data_as<const int64_t>();
  check_targets(indices, rows, classes, options);
  HostHandle out = x.result();
  if (dtype == DType::f64) {
    run_cross_entropy_backward(grad->data_as<const double>(), x.tensor().data_as<const double>(),
                               indices, sums->data_as<const double>(), rows, classes, options,
                               out->data_as<double>());
  } else {
    run_cross_entropy_backward(grad->data_as<const float>(), x.tensor().data_as<const float>(),
                               indices, sums->data_as<const float>(), rows, classes, options,
                               out->data_as<float>());
  }
  return out;
}

}  // namespace kiln
