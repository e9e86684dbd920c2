// Attention without the matrix of scores: kernels/attention*.k.
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
    const Extent groups{static_cast<size_t>((rows + kBlock - 1) / kBlock),
                        static_cast<size_t>(heads), static_cast<size_t>(n_)};
    q_->gpu().launch_groups(kernel, groups, {kBlock, kBlock, 1}, arguments);
  }

 private:
  H q_, k_, v_, mask_;
  const AttentionOptions& options_;
  int64_t n_;
  AttentionSizes<double> shared_;
};

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
  a.launch("attention", s.queries, s.heads,
           {memory_at(out), memory_at(lse), memory_at(a.q()), memory_at(a.k()), memory_at(a.v())});
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
  a.launch("attention_queries", s.queries, s.heads,
           {memory_at(q_grad), memory_at(deltas), memory_at(g), memory_at(a.q()), memory_at(a.k()),
            memory_at(a.v()), memory_at(out), memory_at(lse)});
  a.launch("attention_keys", s.keys, s.key_heads,
           {memory_at(k_grad), memory_at(v_grad), memory_at(deltas), memory_at(g), memory_at(a.q()),
            memory_at(a.k()), memory_at(a.v()), memory_at(lse)});
  return {q_grad, k_grad, v_grad};
}

}  // namespace kiln::gpu
