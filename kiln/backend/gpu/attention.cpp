// Attention without the matrix of scores: kernels/attention*.k; those named mma are for NVIDIA's
// matrix units.
#include <cmath>
#include <vector>

#include "kiln/backend/gpu/nn.h"
#include "kiln/backend/window_math.h"

namespace kiln::gpu {
namespace {

// The struct of attention_sizes.k, with its numbers in R.
template <class R>
struct AttentionSizes {
  int64_t heads;
  int64_t key_heads;
  int64_t heads_per_key;
  int64_t queries;
  int64_t keys;
  int64_t width;
  int64_t value_width;
  int64_t causal;
  int64_t mask_offset = 0;
  int64_t mask_step[4] = {};
  uint64_t seed;
  uint64_t first;
  int64_t threshold;
  R scale;
  R kept;
};

constexpr int64_t kBlock = 16;         // queries or keys of a group
constexpr int64_t kMostHeads = 65535;  // CUDA's grids end there

DType sums_dtype(DType dtype) { return dtype == DType::f64 ? dtype : DType::f32; }
// The widest head that a tile in 48 KiB of local memory has room for.
int64_t widest(DType dtype) { return dtype == DType::f64 ? 64 : 128; }

class AttentionLaunch {
 public:
  AttentionLaunch(const H& q, const H& k, const H& v, const H* mask,
                  const AttentionOptions& options)
      : q_(packed(q)), k_(packed(k)), v_(packed(v)), options_(options) {
    const Shape& qs = q->shape();
    const Shape& ks = k->shape();
    n_ = qs[0];
    shared_ = {qs[1],
               ks[1],
               ks[1] == 0 ? 1 : qs[1] / ks[1],
               qs[2],
               ks[2],
               qs[3],
               v->shape()[3],
               options.causal ? 1 : 0,
               0,
               {},
               options.stream.seed,
               options.stream.offset,
               static_cast<int64_t>(std::ceil(options.dropout * 0x1p24)),
               options.scale,
               1.0 / (1.0 - options.dropout)};
    if (mask == nullptr) return;
    mask_ =
        (*mask)->dtype() == q->dtype() ? *mask : map("y = (ACC(OUT))x0;", q->dtype(), {T(*mask)});
    const Strides steps = window::broadcast_strides(*mask_, Shape{n_, qs[1], qs[2], ks[2]});
    for (int d = 0; d < 4; ++d) shared_.mask_step[d] = steps[d];
    shared_.mask_offset = mask_->offset();
  }

  const H& q() const { return q_; }
  const H& k() const { return k_; }
  const H& v() const { return v_; }
  const AttentionSizes<double>& sizes() const { return shared_; }

  // Groups for `rows` queries or keys of each of `heads`.
  void launch(Literal file, int64_t rows, int64_t heads, std::vector<Argument> arguments) const {
    const DType dtype = q_->dtype();
    const DType sums = sums_dtype(dtype);
    const bool large = std::max(shared_.width, shared_.value_width) > 64;
    const bool drops = options_.dropout != 0.0;
    const auto defines = [&] {
      return define("IN0", dialect_name(dtype)) + define("LSE", dialect_name(sums)) +
             define("SCALAR", scalar_type(dtype)) + arithmetic(dtype) +
             define("MOST", large ? "128" : "64") + (mask_ ? define("HAS_MASK", "1") : "") +
             (drops ? define("DROPOUT", "1") : "");
    };
    const Kernel kernel{.file = file,
                        .choice = choice(dtype, large, static_cast<bool>(mask_), drops),
                        .libraries = {"attention_sizes", drops ? Literal("philox") : Literal()},
                        .defines = defines};
    launch(kernel, kBlock, {kBlock, kBlock, 1}, rows, heads, std::move(arguments));
  }

  // Whether NVIDIA's matrix units take it.
  bool has_units() const {
    const DType dtype = q_->dtype();
    return (dtype == DType::f16 || dtype == DType::bf16) &&
           q_->gpu().properties().major >= kOldestUnits && !mask_ && options_.dropout == 0.0 &&
           shared_.scale > 0.0 && shared_.width % 8 == 0 && shared_.value_width % 8 == 0 &&
           shared_.queries > 0 && shared_.keys > 0;
  }
  // Hopper's have instructions of their own.
  bool has_hopper() const { return q_->gpu().properties().major == 9; }
  int64_t most() const {
    const int64_t wide = std::max(shared_.width, shared_.value_width);
    return wide <= 32 && !has_hopper() ? 32 : wide <= 64 ? 64 : 128;
  }

  // How a kernel for matrix units is launched: `block` queries or keys for each group of `threads`,
  // `more` its own macros, `rows` of local memory with so many elements.
  struct Units {
    Literal file;
    Literal more;
    Literal library = "mma";
    int64_t block = 64;
    size_t threads = 128;
    size_t rows = 0;
  };
  void launch_units(const Units& units, int64_t rows, int64_t heads,
                    std::vector<Argument> arguments) const {
    const DType dtype = q_->dtype();
    const auto defines = [&] {
      return define("IN0", dialect_name(dtype)) + define("LSE", "f32") + define("SCALAR", "f32") +
             arithmetic(dtype) + define("MOST", std::to_string(most())) +
             define("THREADS", std::to_string(units.threads)) + units.more.get();
    };
    // Tiles begin at multiples of 1024 bytes; behind them there is room for numbers of rows.
    const size_t bytes =
        units.rows == 0 ? 0 : units.rows * static_cast<size_t>(most()) * 2 + 1024 + 1024;
    const Kernel kernel{.file = units.file,
                        .parts = {units.more},
                        .choice = choice(dtype, most() / 32),
                        .libraries = {"attention_sizes", units.library},
                        .defines = defines,
                        .local_bytes = bytes};
    launch(kernel, units.block, {units.threads, 1, 1}, rows, heads, std::move(arguments));
  }

 private:
  static constexpr int kOldestUnits = 8;  // compute capability

  void launch(const Kernel& kernel, int64_t block, Extent group, int64_t rows, int64_t heads,
              std::vector<Argument> arguments) const {
    const DType dtype = q_->dtype();
    const AttentionSizes<float> narrow = {
        shared_.heads,
        shared_.key_heads,
        shared_.heads_per_key,
        shared_.queries,
        shared_.keys,
        shared_.width,
        shared_.value_width,
        shared_.causal,
        shared_.mask_offset,
        {shared_.mask_step[0], shared_.mask_step[1], shared_.mask_step[2], shared_.mask_step[3]},
        shared_.seed,
        shared_.first,
        shared_.threshold,
        static_cast<float>(shared_.scale),
        static_cast<float>(shared_.kept)};
    arguments.insert(arguments.begin(),
                     dtype == DType::f64 ? Argument::bytes(shared_) : Argument::bytes(narrow));
    if (mask_) arguments.push_back(Argument::memory(mask_->storage()->memory()));
    const Extent groups{static_cast<size_t>((rows + block - 1) / block), static_cast<size_t>(heads),
                        static_cast<size_t>(n_)};
    q_->gpu().launch_groups(kernel, groups, group, arguments);
  }

  H q_, k_, v_, mask_;
  const AttentionOptions& options_;
  int64_t n_;
  AttentionSizes<double> shared_;
};

using Units = AttentionLaunch::Units;
Units forward_units(bool hopper, int64_t most) {
  if (hopper) {
    return {"attention_wgmma", {}, "wgmma", 128, 256, 128 + 4 * 64};
  }
  if (most <= 64) return {"attention_mma", "#define MINE 2\n", "mma", 128, 128, 0};
  return {"attention_mma", "#define MINE 1\n", "mma", 64, 128, 0};
}
Units query_units(bool hopper, int64_t most) {
  if (hopper) return {"attention_queries_wgmma", {}, "wgmma", 64, 128, 6 * 64};
  return {"attention_queries_mma",
          most <= 64 ? Literal("#define STAGES 2\n") : "#define STAGES 1\n",
          "mma",
          64,
          128,
          0};
}
Units key_units(bool hopper, int64_t most) {
  if (hopper) return {"attention_keys_wgmma", {}, "wgmma", 64, 128, 6 * 64};
  return {"attention_keys_mma",
          most <= 64 ? Literal("#define STAGES 2\n#define QUERIES 64\n#define HELD 1\n")
                     : Literal("#define STAGES 1\n#define QUERIES 32\n"),
          "mma",
          64,
          128,
          0};
}

Argument memory_at(const H& x) { return Argument::memory(x->storage()->memory()); }

H filled(const Shape& shape, double value, DType dtype, Device device) {
  H to = empty(shape, dtype, device);
  fill_into(to, value);
  return to;
}

}  // namespace

bool has_attention(const H& q, const H& v) {
  const int64_t most = widest(q->dtype());
  return q->shape()[3] <= most && v->shape()[3] <= most && q->shape()[0] <= kMostHeads &&
         q->shape()[1] <= kMostHeads;
}

Pair attention(const H& q, const H& k, const H& v, const H* mask, const AttentionOptions& options) {
  const AttentionLaunch a(q, k, v, mask, options);
  const AttentionSizes<double>& s = a.sizes();
  const int64_t n = q->shape()[0];
  H out = empty(Shape{n, s.heads, s.queries, s.value_width}, q->dtype(), q->device());
  H lse = empty(Shape{n, s.heads, s.queries}, sums_dtype(q->dtype()), q->device());
  const std::vector<Argument> operands = {memory_at(out), memory_at(lse), memory_at(a.q()),
                                          memory_at(a.k()), memory_at(a.v())};
  if (!a.has_units()) {
    a.launch("attention", s.queries, s.heads, operands);
  } else {
    a.launch_units(forward_units(a.has_hopper(), a.most()), s.queries, s.heads, operands);
  }
  return {out, lse};
}

Triple attention_backward(const H& g_, const H& q, const H& k, const H& v, const H* mask,
                          const H& out_, const H& lse_, const AttentionOptions& options) {
  const AttentionLaunch a(q, k, v, mask, options);
  const AttentionSizes<double>& s = a.sizes();
  const DType dtype = q->dtype();
  const DType sums = sums_dtype(dtype);
  const Device device = q->device();
  const int64_t n = q->shape()[0];
  if (q->numel() == 0 && g_->numel() == 0) {
    return {filled(q->shape(), 0.0, dtype, device), filled(k->shape(), 0.0, dtype, device),
            filled(v->shape(), 0.0, dtype, device)};
  }
  const H g = packed(g_);
  const H out = packed(out_);
  const H lse = packed(lse_);
  H q_grad = empty(q->shape(), dtype, device);
  H k_grad = empty(k->shape(), dtype, device);
  H v_grad = empty(v->shape(), dtype, device);
  const H deltas = empty(Shape{n, s.heads, s.queries}, sums, device);
  const std::vector<Argument> for_queries = {memory_at(q_grad), memory_at(deltas), memory_at(g),
                                             memory_at(a.q()),  memory_at(a.k()),  memory_at(a.v()),
                                             memory_at(out),    memory_at(lse)};
  const std::vector<Argument> for_keys = {memory_at(k_grad), memory_at(v_grad), memory_at(deltas),
                                          memory_at(g),      memory_at(a.q()),  memory_at(a.k()),
                                          memory_at(a.v()),  memory_at(lse)};
  if (!a.has_units()) {
    a.launch("attention_queries", s.queries, s.heads, for_queries);
    a.launch("attention_keys", s.keys, s.key_heads, for_keys);
  } else {
    a.launch_units(query_units(a.has_hopper(), a.most()), s.queries, s.heads, for_queries);
    a.launch_units(key_units(a.has_hopper(), a.most()), s.keys, s.key_heads, for_keys);
  }
  return {q_grad, k_grad, v_grad};
}

}  // namespace kiln::gpu
