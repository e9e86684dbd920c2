// Products of matrices: kernels/matmul.k.
#include <algorithm>

#include "kiln/backend/gpu/loops.h"

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

}  // namespace

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
  const bool large = p.n >= 64 && p.m >= 64;
  const int64_t tile = large ? 4 * kSide : kSide;
  const auto defines = [&] {
    return define("INDEX", "u32") + define("IN0", dialect_name(x->dtype())) +
           define("OUT", dialect_name(x->dtype())) + define("PER", large ? "4" : "1") +
           product_sum(x->dtype());
  };
  const Kernel kernel{.file = "matmul", .choice = choice(x->dtype(), large), .defines = defines};
  const int64_t batches = batch.numel();
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

}  // namespace kiln::gpu
