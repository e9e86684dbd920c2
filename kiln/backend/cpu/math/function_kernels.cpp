// Functions that are computed one element at a time, in double precision.
#include "kiln/backend/cpu/math/function_kernels.h"

#include <array>

#include "kiln/backend/cpu/elementwise/int_kernels.h"
#include "kiln/backend/cpu/math/special_kernels.h"
#include "kiln/backend/function_math.h"
#include "kiln/core/half.h"

namespace kiln::cpu {
namespace {

template <UnaryFunction::Type kType, class T>
void unary_loop(const KernelArgs& args) {
  const auto& f = *static_cast<const UnaryFunction*>(args.params);
  const auto* x = static_cast<const T*>(args.in[0]);
  auto* out = static_cast<T*>(args.out);
  const auto compute = [&](T value) {
    return static_cast<T>(math::evaluate<kType>(f, static_cast<double>(value)));
  };
  if (args.scalars != 0) {
    const T value = compute(x[0]);
    for (int64_t i = 0; i < args.n; ++i) out[i] = value;
    return;
  }
  for (int64_t i = 0; i < args.n; ++i) out[i] = compute(x[i]);
}

// F(a, b) for T each; steps over an operand that is one element.
template <class T, class Fn>
void pairs(const KernelArgs& args, Fn&& fn) {
  const auto* a = static_cast<const T*>(args.in[0]);
  const auto* b = static_cast<const T*>(args.in[1]);
  auto* out = static_cast<T*>(args.out);
  const int64_t step_a = (args.scalars & 1) == 0;
  const int64_t step_b = (args.scalars & 2) == 0;
  for (int64_t i = 0; i < args.n; ++i) out[i] = fn(a[i * step_a], b[i * step_b]);
}

template <BinaryFunction::Type kType, class T>
void binary_loop(const KernelArgs& args) {
  const auto& f = *static_cast<const BinaryFunction*>(args.params);
  pairs<T>(args, [&](T a, T b) {
    return static_cast<T>(math::evaluate<kType>(f, static_cast<double>(a), static_cast<double>(b)));
  });
}

void ternary_loop(const KernelArgs& args) {
  const auto& f = *static_cast<const TernaryFunction*>(args.params);
  const double* in[3];
  int64_t step[3];
  for (int k = 0; k < 3; ++k) {
    in[k] = static_cast<const double*>(args.in[k]);
    step[k] = (args.scalars >> k & 1) == 0;
  }
  auto* out = static_cast<double*>(args.out);
  for (int64_t i = 0; i < args.n; ++i) {
    out[i] = math::evaluate(f, in[0][i * step[0]], in[1][i * step[1]], in[2][i * step[2]]);
  }
}

template <class T>
void next_after_loop(const KernelArgs& args) {
  pairs<T>(args, [](T a, T b) { return math::next_after(a, b); });
}

template <IntFunction kType, class T>
void int_loop(const KernelArgs& args) {
  pairs<T>(args, [](T a, T b) { return math::evaluate<kType, T>(a, b); });
}

template <UnaryFunction::Type kType>
constexpr Kernel kUnaryRow[2] = {unary_loop<kType, float>, unary_loop<kType, double>};
template <BinaryFunction::Type kType>
constexpr Kernel kBinaryRow[2] = {binary_loop<kType, float>, binary_loop<kType, double>};

template <IntFunction kType>
Kernel int_row(DType dtype) {
  return visit_int("int_binary", dtype, [&]<class T>() -> Kernel { return int_loop<kType, T>; });
}

Kernel int_rows(IntFunction type, DType dtype) {
  using Row = Kernel (*)(DType);
  static constexpr Row rows[] = {
#define KILN_INT_FUNCTION(type) int_row<IntFunction::type>,
#include "kiln/backend/functions.def"
  };
  return rows[static_cast<int>(type)](dtype);
}

// What functions.def says in its column `memory`.
enum class Memory : uint8_t { bound, free };

std::array<const SpecialKernels*, 5> vector_tables() {
  return {&plain_function_kernels(), &special_kernels(), &gamma_kernels(), &bessel_kernels(),
          &double_function_kernels()};
}

}  // namespace

Kernel function_kernel(UnaryFunction::Type type, bool is_double) {
  using enum UnaryFunction::Type;
  for (const SpecialKernels* table : vector_tables()) {
    const Kernel vector = table->unary[static_cast<int>(type)][is_double];
    if (vector != nullptr) return vector;
  }
  if (const Kernel vector = activation_kernels().unary[static_cast<int>(type)][is_double]) {
    return vector;
  }
  static constexpr const Kernel* rows[] = {
#define KILN_UNARY_FUNCTION(type, ...) kUnaryRow<type>,
#include "kiln/backend/functions.def"
  };
  return rows[static_cast<int>(type)][is_double];
}

Kernel function_kernel(BinaryFunction::Type type, DType dtype) {
  using enum BinaryFunction::Type;
  if (type == nextafter && convert_of(dtype) != Convert::none) {
    return visit_float("nextafter", dtype, []<class T>() -> Kernel { return next_after_loop<T>; });
  }
  const int column = column_of(dtype);
  for (const SpecialKernels* table : vector_tables()) {
    const Kernel vector = table->binary[static_cast<int>(type)][column];
    if (vector != nullptr) return vector;
  }
  if (const Kernel vector = activation_kernels().binary[static_cast<int>(type)][column]) {
    return vector;
  }
  static constexpr const Kernel* rows[] = {
#define KILN_BINARY_FUNCTION(type, ...) kBinaryRow<type>,
#include "kiln/backend/functions.def"
  };
  return rows[static_cast<int>(type)][column];
}

Kernel function_kernel(TernaryFunction::Type type, bool is_double) {
  if (const Kernel light = light_ternary_kernel(type, is_double)) return light;
  for (const Kernel vector :
       {activation_kernels().ternary[static_cast<int>(type)][is_double],
        double_function_kernels().ternary[static_cast<int>(type)][is_double]}) {
    if (vector != nullptr) return vector;
  }
  return ternary_loop;
}

bool streams(UnaryFunction::Type type) {
  static constexpr bool rows[] = {
#define KILN_UNARY_FUNCTION(type, node, memory, ...) Memory::memory == Memory::bound,
#include "kiln/backend/functions.def"
  };
  return rows[static_cast<int>(type)];
}

bool streams(BinaryFunction::Type type) {
  static constexpr bool rows[] = {
#define KILN_BINARY_FUNCTION(type, node, memory, ...) Memory::memory == Memory::bound,
#include "kiln/backend/functions.def"
  };
  return rows[static_cast<int>(type)];
}

bool streams(TernaryFunction::Type type, bool is_double) {
  return function_kernel(type, is_double) != ternary_loop;
}

Kernel function_kernel(IntFunction type, DType dtype) {
  switch (type) {
    case IntFunction::shift_left:
      return int_kernel(IntOp::shift_left, dtype);
    case IntFunction::shift_right:
      return int_kernel(IntOp::shift_right, dtype);
    case IntFunction::floor_divide:
      return int_kernel(IntOp::floor_divide, dtype);
    case IntFunction::fmod:
      return int_kernel(IntOp::fmod, dtype);
    default:
      return int_rows(type, dtype);
  }
}

}  // namespace kiln::cpu
