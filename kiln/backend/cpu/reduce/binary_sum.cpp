// Sums of functions of two floats, without storing what is summed.
#include <algorithm>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise/convert_kernels.h"
#include "kiln/backend/cpu/math/function_kernels.h"
#include "kiln/backend/cpu/reduce/reduce_kernels.h"
#include "kiln/backend/cpu/reduce/reduce_steps.h"
#include "kiln/core/dim_order.h"

namespace kiln {
namespace cpu {
namespace {

// How many results are kept at a time, in the first-level cache.
constexpr int64_t kBlock = 2048;

// The sum over n <= kReduceLength elements from `begin` on. 16-bit operands (T is float then) are
// converted first.
template <class T>
double sum_of_piece(Kernel kernel, const BinaryFunction& f, const HostTensor& x,
                    const HostTensor& y, int64_t begin, int64_t n) {
  alignas(64) T results[kBlock];
  alignas(64) T converted[2][kBlock];
  const Convert convert = convert_of(x.dtype());
  const auto item = static_cast<int64_t>(size_of(x.dtype()));
  const auto operand = [&](const HostTensor& from, int64_t at, int64_t count, T* to) -> const T* {
    const auto* bytes = static_cast<const char*>(from.data()) + at * item;
    if constexpr (sizeof(T) == sizeof(float)) {
      if (convert != Convert::none) {
        convert_kernels().to_float(convert, bytes, to, count);
        return to;
      }
    }
    return reinterpret_cast<const T*>(bytes);
  };
  double sum = 0.0;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    KernelArgs args{};
    args.in[0] = operand(x, begin + i, count, converted[0]);
    args.in[1] = operand(y, begin + i, count, converted[1]);
    args.out = results;
    args.n = count;
    args.params = &f;
    kernel(args);
    double part;
    reduce_kernels().of<T>().sum.rows(results, count, 1, &part, nullptr);
    sum += part;
  }
  return sum;
}

// See Note [Fixed pieces].
template <class T>
double sum_of_all(const BinaryFunction& f, const HostTensor& x, const HostTensor& y) {
  const Kernel kernel = function_kernel(f.type, x.dtype());
  const int64_t n = x.numel();
  const int64_t pieces = (n + kReduceLength - 1) / kReduceLength;
  if (pieces <= 1) return sum_of_piece<T>(kernel, f, x, y, 0, n);
  const HostHandle memory = scratch<double>(pieces, x.device());
  auto* partial = memory->data_as<double>();
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i * kReduceLength;
      partial[i] = sum_of_piece<T>(kernel, f, x, y, at, std::min(kReduceLength, n - at));
    }
  });
  double sum = 0.0;
  for (int64_t i = 0; i < pieces; ++i) sum += partial[i];
  return sum;
}

}  // namespace
}  // namespace cpu

HostHandle CpuOps::float_binary_sum(Arg<HostHandle> x, Arg<HostHandle> y, const BinaryFunction& f,
                                    double divisor) {
  if (!(x->shape() == y->shape()) || f.type == BinaryFunction::Type::nextafter) {
    return BackendDefaults<Cpu>::float_binary_sum(x, y, f, divisor);
  }
  // Operands that lie alike are walked through as they lie.
  const bool turned = !x->is_contiguous() && x->strides() == y->strides();
  const auto flat = [turned](const HostHandle& x) {
    return cpu::contiguous(turned ? host::permute(x, by_stride(x->strides())) : x);
  };
  const HostHandle a = flat(x.get()), b = flat(y.get());
  const double sum = x->dtype() == DType::f64 ? cpu::sum_of_all<double>(f, *a, *b)
                                              : cpu::sum_of_all<float>(f, *a, *b);
  return Cpu::float_full(Shape{}, Scalar(sum / divisor), x->dtype(), x->device());
}

}  // namespace kiln
