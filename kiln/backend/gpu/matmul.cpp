// Products of matrices: by a library of the runtime where there is one (Product of driver.h), by
// the matrix units of a GPU (kernels/matmul_mma.k), or kernels/matmul.k.
#include <algorithm>
#include <optional>

#include "kiln/backend/gpu/loops.h"
#include "kiln/backend/window_math.h"

namespace kiln::gpu {

namespace {

struct ProductArgument {
  int64_t n = 0;
  int64_t m = 0;
  int64_t depth = 0;
  int64_t batch_first = 0;
  int64_t a_offset = 0;
  int64_t a_row = 0;
  int64_t a_column = 0;
  int64_t b_offset = 0;
  int64_t b_row = 0;
  int64_t b_column = 0;
  int64_t rank = 0;
  int64_t size[kMaxRank] = {};
  int64_t a_step[kMaxRank] = {};
  int64_t b_step[kMaxRank] = {};
};

Shape batch_of(const Shape& shape) {
  Shape out = shape;
  out.erase(out.rank() - 1);
  out.erase(out.rank() - 1);
  return out;
}

constexpr int64_t kSide = 16;
constexpr int64_t kMostBatches = 65535;  // CUDA's grids end there
// A library's plan costs more than so few multiplications.
constexpr int64_t kFewest = int64_t{1} << 18;

// Where a library finds matrices [rows, columns]; false where it has no way to say it.
bool as_operand(int64_t rows, int64_t columns, int64_t row, int64_t column, int64_t offset,
                Product::Operand* to) {
  to->offset = offset;
  const auto fits = [](int64_t step, int64_t length, int64_t count) {
    return step >= length || count == 1;
  };
  if ((column == 1 || columns == 1) && fits(row, columns, rows)) {
    to->step = rows == 1 ? columns : row;
    return to->step >= columns;
  }
  if ((row == 1 || rows == 1) && fits(column, rows, columns)) {
    to->transposed = true;
    to->step = columns == 1 ? rows : column;
    return to->step >= rows;
  }
  return false;
}

// One step for all of a batch's dims; false where they have several.
bool as_batch(const ProductArgument& p, const int64_t* steps, int64_t* step) {
  *step = 0;
  int64_t count = 1;
  for (int64_t d = p.rank - 1; d >= 0; --d) {
    if (p.size[d] == 1) continue;
    if (count == 1) *step = steps[d];
    if (steps[d] != *step * count) return false;
    count *= p.size[d];
  }
  return true;
}

// Whether a library may take the product, if it can be told where the operands are.
bool is_for_library(const ProductArgument& p, DType dtype, int64_t batches) {
  return element_of(dtype) && p.depth != 0 && p.n * p.m * p.depth * batches >= kFewest;
}

// The product as a library takes it.
std::optional<Product> as_product(const ProductArgument& p, DType dtype, int64_t batches) {
  if (!is_for_library(p, dtype, batches)) return std::nullopt;
  Product out;
  out.element = *element_of(dtype);
  out.n = p.n;
  out.m = p.m;
  out.depth = p.depth;
  out.batch = batches;
  if (!as_operand(p.n, p.depth, p.a_row, p.a_column, p.a_offset, &out.a) ||
      !as_operand(p.depth, p.m, p.b_row, p.b_column, p.b_offset, &out.b) ||
      !as_batch(p, p.a_step, &out.a.batch_step) || !as_batch(p, p.b_step, &out.b.batch_step)) {
    return std::nullopt;
  }
  // Many matrices that meet one are one tall matrix.
  if (batches > 1 && out.b.batch_step == 0 && !out.a.transposed &&
      out.a.batch_step == p.n * out.a.step) {
    out.n *= batches;
    out.batch = 1;
  }
  return out;
}

// Whether the device has matrix units that our kernels use for this dtype, and the product is worth
// their tiles.
bool is_for_units(const ProductArgument& p, const H& x) {
  constexpr int kOldest = 8;  // compute capability
  constexpr int64_t kLeast = 32;
  return size_of(x->dtype()) == 2 && x->gpu().properties().major >= kOldest && p.n >= kLeast &&
         p.m >= kLeast;
}

// x [batch, n, depth] y [batch, depth, m], with the operands' memory in `product`.
void multiply_by_units(const Product& product, DType dtype, const H& to) {
  const int64_t tile = 128;
  constexpr size_t kLocalBytes = 4 * 2 * 128 * 32 * 2;  // STAGES slices of both operands
  const bool a_along = product.a.transposed;
  const bool b_along = !product.b.transposed;
  const auto whole = [](int64_t n) { return n % 8 == 0; };
  const auto is_aligned = [&](const Product::Operand& x, int64_t length) {
    return whole(x.offset) && whole(x.step) && whole(x.batch_step) && whole(length);
  };
  const bool aligned = is_aligned(product.a, a_along ? product.n : product.depth) &&
                       is_aligned(product.b, b_along ? product.m : product.depth);
  const auto defines = [&] {
    return define("IN0", dialect_name(dtype)) + define("MOST", "32") +
           (a_along ? define("A_ALONG", "1") : "") + (b_along ? define("B_ALONG", "1") : "") +
           (aligned ? define("ALIGNED", "1") : "");
  };
  const Kernel kernel{.file = "matmul_mma",
                      .choice = choice(dtype, a_along, b_along, aligned),
                      .libraries = {"mma"},
                      .defines = defines,
                      .local_bytes = kLocalBytes};
  struct {
    int64_t n, m, depth, batch_first;
    int64_t a_offset, a_step, a_batch;
    int64_t b_offset, b_step, b_batch;
  } s{product.n,        product.m,           product.depth,        0,
      product.a.offset, product.a.step,      product.a.batch_step, product.b.offset,
      product.b.step,   product.b.batch_step};
  const int64_t tiles = (s.n + tile - 1) / tile * ((s.m + tile - 1) / tile);
  for (; s.batch_first < product.batch; s.batch_first += kMostBatches) {
    const Argument arguments[] = {Argument::bytes(s), Argument::memory(product.out),
                                  Argument::memory(product.a.memory),
                                  Argument::memory(product.b.memory)};
    const int64_t batches = std::min(kMostBatches, product.batch - s.batch_first);
    to->gpu().launch_groups(kernel, {static_cast<size_t>(tiles), 1, static_cast<size_t>(batches)},
                            {256, 1, 1}, arguments);
  }
}

}  // namespace

std::optional<Product::Element> element_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return Product::Element::f64;
    case DType::f32:
      return Product::Element::f32;
    case DType::f16:
      return Product::Element::f16;
    case DType::bf16:
      return Product::Element::bf16;
    default:
      return std::nullopt;
  }
}

H matmul(const H& x, const H& y) {
  const int xr = x->shape().rank();
  const int yr = y->shape().rank();
  ProductArgument p;
  p.n = x->shape()[xr - 2];
  p.depth = x->shape()[xr - 1];
  p.m = y->shape()[yr - 1];
  const Shape batch = broadcast_shapes("matmul", batch_of(x->shape()), batch_of(y->shape()));
  Shape shape = batch;
  shape.push_back(p.n);
  shape.push_back(p.m);
  H to = empty(shape, x->dtype(), x->device());
  if (to->numel() == 0) return to;
  p.a_offset = x->offset();
  p.a_row = x->strides()[xr - 2];
  p.a_column = x->strides()[xr - 1];
  p.b_offset = y->offset();
  p.b_row = y->strides()[yr - 2];
  p.b_column = y->strides()[yr - 1];
  p.rank = std::max(batch.rank(), 1);
  p.size[0] = 1;
  const auto steps = [&](const H& t, int64_t* out) {
    const int lead = batch.rank() - (t->shape().rank() - 2);
    for (int d = lead; d < batch.rank(); ++d) {
      if (t->shape()[d - lead] != 1) out[d] = t->strides()[d - lead];
    }
  };
  for (int d = 0; d < batch.rank(); ++d) p.size[d] = batch[d];
  steps(x, p.a_step);
  steps(y, p.b_step);
  const int64_t batches = batch.numel();
  if (auto product = as_product(p, x->dtype(), batches)) {
    product->a.memory = x->storage()->memory();
    product->b.memory = y->storage()->memory();
    product->out = to->storage()->memory();
    if (x->gpu().multiply(*product)) return to;
    if (is_for_units(p, x)) {
      multiply_by_units(*product, x->dtype(), to);
      return to;
    }
  } else if (is_for_library(p, x->dtype(), batches) &&
             (x->gpu().multiplies() || is_for_units(p, x))) {
    // One of them lies in no such way: copied, both do.
    const auto copied = [&](const H& t) {
      Shape whole = batch;
      whole.push_back(t->shape()[t->shape().rank() - 2]);
      whole.push_back(t->shape()[t->shape().rank() - 1]);
      return contiguous(window::expand(t, whole));
    };
    return matmul(copied(x), copied(y));
  }
  const bool large = p.n >= 64 && p.m >= 64;
  const int64_t tile = large ? 4 * kSide : kSide;
  const auto defines = [&] {
    return define("INDEX", "u32") + define("IN0", dialect_name(x->dtype())) +
           define("OUT", dialect_name(x->dtype())) + define("PER", large ? "4" : "1") +
           product_sum(x->dtype());
  };
  const Kernel kernel{.file = "matmul", .choice = choice(x->dtype(), large), .defines = defines};
  for (; p.batch_first < batches; p.batch_first += kMostBatches) {
    const Argument arguments[] = {Argument::bytes(p), Argument::memory(to->storage()->memory()),
                                  Argument::memory(x->storage()->memory()),
                                  Argument::memory(y->storage()->memory())};
    const Extent groups{static_cast<size_t>((p.m + tile - 1) / tile),
                        static_cast<size_t>((p.n + tile - 1) / tile),
                        static_cast<size_t>(std::min(kMostBatches, batches - p.batch_first))};
    x->gpu().launch_groups(kernel, groups, {kSide, kSide, 1}, arguments);
  }
  return to;
}

H linear(const H& x, const H& weight, const H* bias) {
  const int64_t in = weight->shape()[1];
  const int64_t out = weight->shape()[0];
  Shape shape = x->shape();
  shape.back() = out;
  const int64_t rows = in == 0 ? 0 : x->numel() / in;
  ProductArgument p;
  p.n = rows;
  p.m = out;
  p.depth = in;
  p.b_offset = weight->offset();
  p.b_row = weight->strides()[1];
  p.b_column = weight->strides()[0];
  p.rank = 1;
  p.size[0] = 1;
  p.a_row = in;
  p.a_column = 1;
  const bool joined = bias != nullptr && (*bias)->dtype() == x->dtype() && (*bias)->is_contiguous();
  if (bias == nullptr || joined) {
    if (auto product = as_product(p, x->dtype(), 1)) {
      const H flat = contiguous(x);
      H to = empty(shape, x->dtype(), x->device());
      product->a.memory = flat->storage()->memory();
      product->a.offset = flat->offset();
      product->b.memory = weight->storage()->memory();
      product->out = to->storage()->memory();
      if (joined) {
        product->bias = (*bias)->storage()->memory();
        product->bias_offset = (*bias)->offset();
      }
      if (x->gpu().multiply(*product)) return to;
    }
  }
  return {};
}

}  // namespace kiln::gpu
