// Matrix products: which matrices a tensor of any strides holds, and how a batch of them is shared
// out.
#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "kiln/backend/activated.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise/finish.h"
#include "kiln/backend/cpu/matmul/gemm.h"
#include "kiln/backend/cpu/matmul/gemm_half.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/matmul/kept_columns.h"
#include "kiln/backend/cpu/matmul/small_product_kernels.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace {

using cpu::Gemm;
using cpu::MatrixView;

// Multiply-adds in a piece of a batch, at least; and in one product that is shared out itself.
constexpr int64_t kBatchPieceWork = 64 * 1024;
constexpr int64_t kSharedWork = 4 * 1024 * 1024;
// Rows and columns of a product in which sums are made in short runs.
constexpr int64_t kFlat = 128;

// The matrix in the last two dims. A stride that no index multiplies becomes what suits the
// kernels.
template <class T>
MatrixView<T> last_matrix(const HostTensor& x) {
  const int rank = x.shape().rank();
  MatrixView<T> view{x.data_as<const T>(), x.strides()[rank - 2], x.strides()[rank - 1]};
  if (x.shape()[rank - 1] == 1) view.column = 1;
  return view;
}

// The batch of a product: its dims, and each operand's strides over them (0 where it is broadcast).
struct Batch {
  Shape shape;
  Strides a, b;

  Batch(const HostTensor& x, const HostTensor& y) {
    const int rank = std::max(x.shape().rank(), y.shape().rank()) - 2;
    shape = a = b = Shape::filled(rank, 0);
    for (int d = 0; d < rank; ++d) {
      const int dx = d - (rank + 2 - x.shape().rank());
      const int dy = d - (rank + 2 - y.shape().rank());
      const int64_t nx = dx < 0 ? 1 : x.shape()[dx];
      const int64_t ny = dy < 0 ? 1 : y.shape()[dy];
      shape[d] = nx == 1 ? ny : nx;
      if (nx != 1) a[d] = x.strides()[dx];
      if (ny != 1) b[d] = y.strides()[dy];
    }
  }

  // How far the matrices of batch element i lie from the first.
  std::pair<int64_t, int64_t> offsets(int64_t i) const {
    if (shape.rank() == 1) return {i * a[0], i * b[0]};
    int64_t at_a = 0, at_b = 0;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      at_a += i % shape[d] * a[d];
      at_b += i % shape[d] * b[d];
      i /= shape[d];
    }
    return {at_a, at_b};
  }

  // Whether one B serves the whole batch and the rows of all As follow one another, `row` elements
  // apart: then the batch is one product with more rows.
  bool is_one_product(int64_t rows, int64_t row) const {
    int64_t next = rows * row;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if (shape[d] == 1) continue;
      if (b[d] != 0 || a[d] != next) return false;
      next *= shape[d];
    }
    return true;
  }
};

template <class T>
void multiply(const HostTensor& x, const HostTensor& y, const HostTensor& out) {
  Gemm<T> g;
  g.m = x.shape()[x.shape().rank() - 2];
  g.k = x.shape().back();
  g.n = y.shape().back();
  g.a = last_matrix<T>(x);
  g.b = last_matrix<T>(y);
  if (g.k == 1 && g.b.column == 1) g.b.row = g.n;
  g.c = out.data_as<T>();
  g.c_row = g.n;
  const Batch batch(x, y);
  const int64_t count = batch.shape.numel();
  if (count == 0 || g.m == 0 || g.n == 0) return;
  const bool is_one = batch.is_one_product(g.m, g.a.row);
  if (is_one) g.m *= count;
  if (std::max(g.m, g.n) <= kFlat && g.k > cpu::kGemmDepth) g.depth = cpu::kFlatGemmDepth;
  if (is_one) {
    if (g.n == 1 && g.k == 1) {  // a column times a number: as a row, whose neighbours are lanes
      g.n = g.c_row = std::exchange(g.m, 1);
      g.b = {std::exchange(g.a.data, g.b.data), g.n, g.a.row};
    }
    return cpu::gemm(g);
  }
  const auto one = [&](int64_t i) {
    const auto [at_a, at_b] = batch.offsets(i);
    Gemm<T> part = g;
    part.a.data += at_a;
    part.b.data += at_b;
    part.c += i * g.m * g.n;
    return part;
  };
  const int64_t work = std::max<int64_t>(g.m * g.n * g.k, 1);
  const int64_t grain = std::max<int64_t>(kBatchPieceWork / work, 1);
  if constexpr (std::is_floating_point_v<T>) {
    // Vectors have sums of their own, in another order, wherever they stand in a batch.
    constexpr int64_t kSmall = cpu::SmallProduct<T>::kMost;
    const auto& kernels = cpu::small_product_kernels<T>();
    if (g.m > 1 && g.n > 1 && g.k > 0 && std::max(g.m, g.k) <= kSmall &&
        g.n <= std::min(4 * kernels.lanes, kSmall)) {
      const cpu::SmallProduct<T> product{g.m, g.n, g.k, g.a.row, g.a.column, g.b.row, g.b.column};
      parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const auto [at_a, at_b] = batch.offsets(i);
          kernels.multiply(product, g.a.data + at_a, g.b.data + at_b, g.c + i * g.m * g.n);
        }
      });
      return;
    }
    // Few and short dot products, as a product alone has them.
    constexpr int64_t kLongestAlone = 4096;
    const bool few = g.m == 1 ? g.k <= kLongestAlone : std::max(g.m, g.k) <= kSmall;
    if (g.n == 1 && few && g.a.column == 1 && g.b.row == 1 && g.k > 1) {
      const auto& dots = cpu::gemm_kernels<T>().dots;
      parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const auto [at_a, at_b] = batch.offsets(i);
          dots(g.b.data + at_b, g.a.data + at_a, g.a.row, g.m, g.k, g.c + i * g.m, false);
        }
      });
      return;
    }
  }
  if (work >= kSharedWork || count == 1) {
    for (int64_t i = 0; i < count; ++i) cpu::gemm(one(i));
    return;
  }
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) cpu::gemm_serial(one(i));
  });
}

Shape product_shape(const HostTensor& x, const HostTensor& y) {
  Shape shape = Batch(x, y).shape;
  shape.push_back(x.shape()[x.shape().rank() - 2]);
  shape.push_back(y.shape().back());
  return shape;
}

// Plain loops; `Sum` is unsigned, where wrapping is defined.
template <class T>
void multiply_ints(const HostTensor& x, const HostTensor& y, const HostTensor& out) {
  using Sum = std::make_unsigned_t<T>;
  const int64_t m = x.shape()[x.shape().rank() - 2];
  const int64_t k = x.shape().back();
  const int64_t n = y.shape().back();
  const MatrixView<T> a = last_matrix<T>(x);
  const MatrixView<T> b = last_matrix<T>(y);
  const Batch batch(x, y);
  const int64_t rows = batch.shape.numel() * m;
  parallel_for(rows, std::max<int64_t>(kGrain / std::max<int64_t>(n * k, 1), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) {
                   const auto [at_a, at_b] = batch.offsets(r / m);
                   const T* row = a.data + at_a + r % m * a.row;
                   T* to = out.data_as<T>() + r * n;
                   std::fill_n(to, n, T(0));
                   for (int64_t p = 0; p < k; ++p) {
                     const Sum factor = static_cast<Sum>(row[p * a.column]);
                     const T* from = b.data + at_b + p * b.row;
                     for (int64_t j = 0; j < n; ++j) {
                       // Unsigned types below int's size are promoted to int: 0u keeps the product
                       // unsigned.
                       to[j] = static_cast<T>(static_cast<Sum>(
                           0u + to[j] + (0u + factor) * static_cast<Sum>(from[j * b.column])));
                     }
                   }
                 }
               });
}

// x [.., in] as a matrix of rows, where its strides allow one.
template <class T>
std::optional<MatrixView<T>> rows_of(const HostTensor& x) {
  const int rank = x.shape().rank();
  MatrixView<T> view{x.data_as<const T>(), x.shape().back(), x.strides().back()};
  if (x.shape().back() == 1) view.column = 1;
  int64_t next = -1;
  for (int d = rank - 2; d >= 0; --d) {
    if (x.shape()[d] == 1) continue;
    if (next == -1) {
      view.row = x.strides()[d];
    } else if (x.strides()[d] != next) {
      return std::nullopt;
    }
    next = x.strides()[d] * x.shape()[d];
  }
  return view;
}

// activation(x weight^T + bias) + residual, where there are any.
struct LinearFinish {
  const HostHandle* bias = nullptr;
  const HostHandle* residual = nullptr;
  Activation activation = Activation::none;
};

// A weight of so many rows of x is packed in no time beside the product.
constexpr int64_t kMostRowsOfKept = 1024;
constexpr int64_t kMostHalfRowsOfKept = 8192;

// The weight in panels, where it is kept (Note [Kept data]); else null.
template <class T>
std::shared_ptr<const void> kept_weight(const HostTensor& weight, const Gemm<T>& g) {
  if (g.m < 2) return nullptr;
  if constexpr (std::is_same_v<T, bfloat16>) {
    return g.m > kMostHalfRowsOfKept ? nullptr : cpu::kept_half_columns(*weight.storage(), g);
  } else if constexpr (std::is_floating_point_v<T>) {
    return g.m > kMostRowsOfKept ? nullptr : cpu::kept_columns(*weight.storage(), g);
  } else {
    return nullptr;
  }
}

template <class T>
void multiply_linear(const HostTensor& x, const HostTensor& weight, const LinearFinish& end,
                     const HostTensor& out) {
  Gemm<T> g;
  g.n = weight.shape()[0];
  g.k = weight.shape()[1];
  g.m = 1;
  for (int d = 0; d + 1 < x.shape().rank(); ++d) g.m *= x.shape()[d];
  g.a = *rows_of<T>(x);
  const MatrixView<T> w = last_matrix<T>(weight);
  g.b = {w.data, w.column, w.row};
  if (g.n == 1) g.b.column = 1;
  g.c = out.data_as<T>();
  g.c_row = g.n;
  if (end.bias != nullptr) g.column_bias = (*end.bias)->data_as<const T>();
  if (end.residual != nullptr) g.residual = (*end.residual)->data_as<const T>();
  const cpu::ActivationKernel activation =
      cpu::activation_kernel(end.activation, cpu::is_half(out.dtype()) ? DType::f32 : out.dtype());
  g.activation = activation.kernel;
  g.activation_params = activation.params;
  const cpu::TileActivation<T> in_tile = activation.in_tile<T>();
  if (std::is_same_v<T, float> && activation.fits_tiles) g.in_tile = &in_tile;
  const std::shared_ptr<const void> packed = kept_weight(weight, g);
  if (packed != nullptr) {
    g.packed_b = static_cast<const T*>(packed.get());
    if constexpr (std::is_floating_point_v<T>) g.packed_columns = cpu::packed_b_columns<T>(g.n);
  }
  cpu::gemm(g);
}

// The biases and the residual are row-major. 16-bit floats have an activation or a residual only
// where finishes_half().
HostHandle run_linear(HostHandle x, const HostTensor& weight, const LinearFinish& end) {
  Shape shape = x->shape();
  shape.back() = weight.shape()[0];
  HostHandle out = host::empty(shape, x->dtype(), x->device());
  visit_float("linear", x->dtype(), [&]<class T>() {
    if (!rows_of<T>(*x)) x = cpu::contiguous(x);
    multiply_linear<T>(*x, weight, end, *out);
  });
  return out;
}

}  // namespace

HostHandle CpuOps::float_matmul(Arg<HostHandle> a, Arg<HostHandle> b) {
  const DType dtype = a.get()->dtype();
  const HostTensor& x = *a.get();
  const HostTensor& y = *b.get();
  // One product for each element: of columns with rows.
  if (x.shape().back() == 1) return float_mul(a, b);
  const int64_t rows = x.shape().numel() / std::max<int64_t>(x.shape().back(), 1);
  if (cpu::is_half(dtype) && !cpu::multiplies_half(dtype, rows, y.shape().back())) {
    return cpu::narrowed(float_matmul(cpu::widened(a), cpu::widened(b)), dtype);
  }
  HostHandle out = host::empty(product_shape(x, y), dtype, x.device());
  visit_float("matmul", dtype, [&]<class T>() { multiply<T>(x, y, *out); });
  return out;
}

HostHandle CpuOps::float_linear(Arg<HostHandle> x, Arg<HostHandle> weight, const HostHandle* bias) {
  const DType dtype = x.get()->dtype();
  const Shape& xs = x.get()->shape();
  if (cpu::is_half(dtype) &&
      !cpu::multiplies_half(dtype, xs.numel() / std::max<int64_t>(xs.back(), 1),
                            weight.get()->shape()[0])) {
    const cpu::OptionalOperand wide(bias, cpu::widened);
    return cpu::narrowed(float_linear(cpu::widened(x), cpu::widened(weight), wide.get()), dtype);
  }
  const cpu::OptionalOperand row_bias(bias, cpu::contiguous);
  return run_linear(x.get(), *weight.get(), {.bias = row_bias.get()});
}

HostHandle CpuOps::float_linear_activation(Arg<HostHandle> x, Arg<HostHandle> weight,
                                           const HostHandle* bias, const HostHandle* residual,
                                           Activation activation) {
  const Shape& xs = x.get()->shape();
  const DType dtype = x.get()->dtype();
  if (cpu::is_half(dtype) &&
      !cpu::finishes_half(dtype, xs.numel() / std::max<int64_t>(xs.back(), 1),
                          weight.get()->shape()[0])) {  // rounded between the steps
    HostHandle out = activated<CpuOps>(float_linear(x, weight, bias), activation);
    return residual == nullptr ? out : float_add(std::move(out), *residual);
  }
  const cpu::OptionalOperand row_bias(bias, cpu::contiguous);
  const cpu::OptionalOperand added(residual, cpu::contiguous);
  return run_linear(x.get(), *weight.get(), {row_bias.get(), added.get(), activation});
}

HostHandle CpuOps::int_matmul(Arg<HostHandle> a, Arg<HostHandle> b) {
  const HostTensor& x = *a.get();
  const HostTensor& y = *b.get();
  HostHandle out = host::empty(product_shape(x, y), x.dtype(), x.device());
  visit_int("matmul", x.dtype(), [&]<class T>() { multiply_ints<T>(x, y, *out); });
  return out;
}

}  // namespace kiln
