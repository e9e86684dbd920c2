// What the normalizations of norms.cpp and batch_norm.cpp share. Internal.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "kiln/backend/gpu/nn.h"

namespace kiln::gpu {

// What all these kernels hang on.
struct NormFlags {
  bool weight = false;
  bool bias = false;
  bool variance = false;
  bool backward = false;
  bool wide = false;
  bool whole = false;
  bool by_row = false;
  HeldRow held = {};
};

struct NormKernel {
  Literal file;
  DType out;   // OUT
  DType stat;  // STAT
  Literal library = {};
};

inline void launch_norm(const NormKernel& norm, const H& x, const NormFlags& f, Extent items,
                        bool groups, const std::vector<Argument>& arguments) {
  const auto defines = [&] {
    return define("INDEX", index_type(f.wide)) + define("IN0", dialect_name(x->dtype())) +
           define("OUT", dialect_name(norm.out)) + define("STAT", dialect_name(norm.stat)) +
           define("SCALAR", scalar_type(x->dtype())) + arithmetic(x->dtype()) +
           (f.weight ? define("HAS_WEIGHT", "1") : "") + (f.bias ? define("HAS_BIAS", "1") : "") +
           (f.variance ? define("VARIANCE", "1") : "") +
           (f.backward ? define("BACKWARD", "1") : "") + (f.whole ? define("WHOLE", "1") : "") +
           (f.by_row ? define("BY_ROW", "1") : "") + f.held.defines();
  };
  const Kernel kernel{.file = norm.file,
                      .choice = choice(x->dtype(), norm.out, norm.stat, f.weight * 2 + f.bias,
                                       f.variance, f.backward * 4 + f.whole * 2 + f.by_row, f.wide,
                                       f.held.packs, f.held.vector),
                      .libraries = {norm.library},
                      .defines = defines};
  if (groups) {
    x->gpu().launch_groups(kernel, items, {kGroup, 1, 1}, arguments);
  } else {
    x->gpu().launch(kernel, items.x, arguments);
  }
}

inline bool is_wide(const H& x) { return x->numel() >= (int64_t{1} << 31); }
// In x's dtype and order (of images: `last` or row-major); a copy where it needs one.
inline H operand(const H& x, DType dtype, bool last = false) {
  return packed(x->dtype() == dtype ? x : map("y = (ACC(OUT))x0;", dtype, {T(x)}), last);
}
inline H operand_or_none(const H* x, DType dtype) {
  return x == nullptr ? H() : operand(*x, dtype);
}
// The dtype of sums over elements of one.
inline DType total_of(DType dtype) { return dtype == DType::f64 ? dtype : DType::f32; }

// Elements of each channel of a sample.
inline int64_t space_of(const Shape& shape) {
  int64_t space = 1;
  for (int d = 2; d < shape.rank(); ++d) space *= shape[d];
  return space;
}
inline int64_t positive(int64_t n) { return n > 0 ? n : 1; }
// Elements of a channel that are read at once.
inline HeldRow by_packs(const H& x, int64_t space) {
  HeldRow row;
  const DType dtype = x->dtype();
  if (space % pack_of(dtype) == 0 && x->numel() >= kFewElements) row.vector = pack_of(dtype);
  return row;
}
// Samples of a channel that a group takes.
inline int64_t samples_of(int64_t n, int64_t space) {
  constexpr int64_t kElements = 8192;
  return std::clamp<int64_t>(kElements / positive(space), 1, std::max<int64_t>(n, 1));
}

// The struct of norm_channels.k.
struct Channels {
  int64_t n = 1;
  int64_t channels = 1;
  int64_t space = 1;
  int64_t stat_step = 0;
  int64_t per_stat = 1;
  int64_t chunk = 1;
  int64_t chunks = 1;
};
// The sums over each channel of g u and of g, in `shape` and of dtype `result`. g and x are packed,
// means and spreads (with `variance` variances) of one dtype.
Pair channel_grads(const H& g, const H& x, const H& mean, const H& spread, Channels s,
                   const Shape& shape, double eps, bool variance, DType result);

}  // namespace kiln::gpu
