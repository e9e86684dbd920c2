// The rules of ops of neural networks. Internal to batched_table.cpp.
#pragma once

#include "kiln/backend/batched/rules.h"
#include "kiln/backend/defaults.h"

namespace kiln::batched {

// What BackendDefaults makes of an op, on batched tensors: the ops that it consists of have rules.
struct Composed : BackendDefaults<Dispatch> {};
struct Compose {
  template <class Call, class... A>
  static auto apply(const Region&, const A&... args) {
    return Call::composed(args...);
  }
};

// Products of rows with one weight take any dims in front.
struct Linear {
  template <class Call>
  static ErasedTensor apply(const Region& region, const Arg<ErasedTensor>& x,
                            const Arg<ErasedTensor>& w, const ErasedTensor* b) {
    if (is_of(w, region) || is_of(b, region)) return Call::composed(x, w, b);
    return wrapped(Call::run(inner_of(x, region), w.get(), b), region);
  }
  template <class Call>
  static ErasedTensor apply(const Region& region, const Arg<ErasedTensor>& x,
                            const Arg<ErasedTensor>& w, const ErasedTensor* b,
                            const ErasedTensor* residual, Activation activation) {
    if (is_of(w, region) || is_of(b, region)) {
      return Call::composed(x, w, b, residual, activation);
    }
    HeldOptional rest;
    if (residual != nullptr) rest.value = full(*residual, region);
    const ErasedTensor* added = rest;
    return wrapped(Call::run(full(x, region), w.get(), b, added, activation), region);
  }
};

// The weight of a quantized product is no tensor of a batch.
struct QuantizedLinear {
  template <class Call>
  static ErasedTensor apply(const Region& region, const Arg<ErasedTensor>& x,
                            const Arg<ErasedTensor>& w, const ErasedTensor* b) {
    if (is_of(b, region)) return Loop::apply<Call>(region, x, w, b);
    return wrapped(Call::run(inner_of(x, region), w.get(), b), region);
  }
};

// Statistics over the last dims, with one weight: any dims in front.
struct LastDimsNorm {
  template <class Call>
  static auto apply(const Region& region, const Arg<ErasedTensor>& x, const ErasedTensor* w,
                    const ErasedTensor* b, int n, double eps) {
    if (is_of(w, region) || is_of(b, region)) return Call::composed(x, w, b, n, eps);
    return wrapped(Call::run(inner_of(x, region), w, b, n, eps), region);
  }
};

// Batches of dense matrices are columns of one, where the sparse matrix is the same for all.
struct CsrMatmul {
  template <class Call>
  static ErasedTensor apply(const Region& region, const Arg<ErasedTensor>& crow,
                            const Arg<ErasedTensor>& col, const Arg<ErasedTensor>& values,
                            const Arg<ErasedTensor>& dense, int64_t columns, bool transposed) {
    if (is_of(crow, region) || is_of(col, region)) {
      return Loop::apply<Call>(region, crow, col, values, dense, columns, transposed);
    }
    if (is_of(values, region)) {
      return Call::composed(crow, col, values, dense, columns, transposed);
    }
    const ErasedTensor all = full(dense, region);
    const int64_t rows = all->shape()[1];
    const int64_t n = all->shape()[2];
    const ErasedTensor beside =
        reshape(Dispatch::float_permute(all, Shape{1, 0, 2}), Shape{rows, region.size * n});
    const ErasedTensor out =
        Call::run(crow.get(), col.get(), values.get(), beside, columns, transposed);
    const ErasedTensor apart = reshape(out, Shape{out->shape()[0], region.size, n});
    return wrapped(Dispatch::float_permute(apart, Shape{1, 0, 2}), region);
  }
};
struct CsrSampledMatmul {
  template <class Call>
  static ErasedTensor apply(const Region& region, const Arg<ErasedTensor>& crow,
                            const Arg<ErasedTensor>& col, const Arg<ErasedTensor>& x,
                            const Arg<ErasedTensor>& y) {
    if (is_of(crow, region) || is_of(col, region)) {
      return Loop::apply<Call>(region, crow, col, x, y);
    }
    return Call::composed(crow, col, x, y);
  }
};

// Convolutions. With one weight the batch joins that of the images; otherwise its elements become
// groups of channels: [B; N, C, ..] -> [N, B C, ..].
struct Convolution {
  static ErasedTensor as_groups(const ErasedTensor& x, const Region& region) {
    const ErasedTensor all = full(x, region);
    const Shape s = all->shape();
    const ErasedTensor turned = Dispatch::float_permute(all, Shape{1, 0, 2, 3, 4});
    return reshape(turned, Shape{s[1], s[0] * s[2], s[3], s[4]});
  }
  static ErasedTensor from_groups(const ErasedTensor& x, const Region& region) {
    const Shape s = x->shape();
    const ErasedTensor apart = reshape(x, Shape{s[0], region.size, s[1] / region.size, s[2], s[3]});
    return wrapped(Dispatch::float_permute(apart, Shape{1, 0, 2, 3, 4}), region);
  }
  // [B; O, ..] -> [B O, ..]
  static ErasedTensor joined(const ErasedTensor& w, const Region& region) {
    return Fold::Map{region}.tensor(w);
  }
  static ConvOptions grouped(ConvOptions options, const Region& region) {
    options.groups *= region.size;
    return options;
  }
};

struct Conv2d : Convolution {
  template <class Call>
  static ErasedTensor apply(const Region& region, const Arg<ErasedTensor>& x,
                            const Arg<ErasedTensor>& w, const ErasedTensor* b,
                            const ConvOptions& options) {
    if (!is_of(w, region) && !is_of(b, region)) {
      return wrapped(Fold::unfolded(Call::run(joined(x, region), w.get(), b, options), region),
                     region);
    }
    HeldOptional bias;
    if (b != nullptr) bias.value = joined(*b, region);
    const ErasedTensor* added = bias;
    return from_groups(
        Call::run(as_groups(x, region), joined(w, region), added, grouped(options, region)),
        region);
  }
  template <class Call>
  static ErasedTensor apply(const Region& region, const Arg<ErasedTensor>& x,
                            const Arg<ErasedTensor>& w, const ErasedTensor* b,
                            const ErasedTensor* residual, Activation activation,
                            const ConvOptions& options) {
    if (is_of(w, region) || is_of(b, region)) {
      return Call::composed(x, w, b, residual, activation, options);
    }
    HeldOptional rest;
    if (residual != nullptr) rest.value = joined(*residual, region);
    const ErasedTensor* added = rest;
    return wrapped(
        Fold::unfolded(Call::run(joined(x, region), w.get(), b, added, activation, options),
                       region),
        region);
  }
};

struct Conv2dInputGrad : Convolution {
  template <class Call>
  static ErasedTensor apply(const Region& region, const Arg<ErasedTensor>& w,
                            const Arg<ErasedTensor>& g, const Shape& shape,
                            const ConvOptions& options) {
    if (!is_of(w, region)) {
      const Shape all = Fold::Map{region}.shape(shape);
      return wrapped(Fold::unfolded(Call::run(w.get(), joined(g, region), all, options), region),
                     region);
    }
    Shape to = shape;
    to[1] *= region.size;
    return from_groups(
        Call::run(joined(w, region), as_groups(g, region), to, grouped(options, region)), region);
  }
};

struct Conv2dWeightGrad : Convolution {
  template <class Call>
  static ErasedTensor apply(const Region& region, const Arg<ErasedTensor>& x,
                            const Arg<ErasedTensor>& g, const Shape& shape,
                            const ConvOptions& options) {
    const ErasedTensor all = Call::run(as_groups(x, region), as_groups(g, region),
                                       Fold::Map{region}.shape(shape), grouped(options, region));
    return wrapped(Fold::unfolded(all, region), region);
  }
};

// Ops with an index of one dim that counts for all.
struct ByIndex {
  template <class Call>
  static ErasedTensor apply(const Region& region, const Arg<ErasedTensor>& x, int dim,
                            const Arg<ErasedTensor>& index) {
    if (!is_of(index, region)) {
      return wrapped(Call::run(inner_of(x, region), dim + 1, index.get()), region);
    }
    if (is_of(x, region) || dim != 0) return Loop::apply<Call>(region, x, dim, index);
    // Rows of one table.
    const int64_t count = index->shape()[0];
    const ErasedTensor all = reshape(inner_of(index, region), Shape{region.size * count});
    const ErasedTensor rows = Call::run(x.get(), 0, all);
    return wrapped(
        reshape(rows, with_front(region.size, with_front(count, without_front(x->shape())))),
        region);
  }
  template <class Call>
  static ErasedTensor apply(const Region& region, const Arg<ErasedTensor>& x, int dim,
                            const Arg<ErasedTensor>& index, const Arg<ErasedTensor>& source) {
    if (is_of(index, region)) return Loop::apply<Call>(region, x, dim, index, source);
    return wrapped(Call::run(full(x, region), dim + 1, index.get(), full(source, region)), region);
  }
};

// ---- Random numbers

// A stream for a batch of its own: other numbers than those of the stream that it comes from.
inline RandomStream stream_of(RandomStream stream, const Region& region) {
  stream.seed ^= 0x9e3779b97f4a7c15u * (region.level + 1);
  return stream;
}

inline void check_may_draw(const Region& region) {
  if (region.randomness != Randomness::error) return;
  throw_error<RuntimeError>(
      "vmap: called random operation while in randomness error mode; try randomness='same' (one "
      "draw for the whole batch) or 'different'");
}

struct Draw {
  template <class Call>
  static ErasedTensor apply(const Region& region, const Shape& shape,
                            const Distribution& distribution, const RandomStream& stream,
                            DType dtype, Device device) {
    check_may_draw(region);
    if (region.randomness == Randomness::same) {
      return Call::run(shape, distribution, stream, dtype, device);
    }
    return wrapped(Call::run(with_front(region.size, shape), distribution,
                             stream_of(stream, region), dtype, device),
                   region);
  }
};

struct Dropout {
  template <class Call>
  static ErasedTensor apply(const Region& region, const Arg<ErasedTensor>& x, double p,
                            const RandomStream& stream) {
    check_may_draw(region);
    if (region.randomness == Randomness::different) {
      return wrapped(Call::run(full(x, region), p, stream_of(stream, region)), region);
    }
    const ErasedTensor ones =
        Dispatch::float_full(x->shape(), Scalar(1.0), x->dtype(), x->device());
    return Dispatch::float_mul(x.get(), Call::run(ones, p, stream));
  }
};

struct Attention {
  // [N, H, L, S]
  static HeldOptional whole_mask(const ErasedTensor* mask, const ErasedTensor& q,
                                 const ErasedTensor& k) {
    if (mask == nullptr) return {};
    const Shape all{q->shape()[0], q->shape()[1], q->shape()[2], k->shape()[2]};
    Shape wide;
    for (int i = (*mask)->shape().rank(); i < 4; ++i) wide.push_back(1);
    for (const int64_t n : (*mask)->shape()) wide.push_back(n);
    return {expand(reshape(*mask, wide), all)};
  }
  // Whether each element must be computed by itself, to have the same numbers.
  static bool prepare(AttentionOptions& options, const Region& region) {
    if (options.dropout <= 0.0) return false;
    check_may_draw(region);
    options.stream = stream_of(options.stream, region);
    return region.randomness == Randomness::same;
  }
  template <class Call>
  static auto apply(const Region& region, const Arg<ErasedTensor>& q, const Arg<ErasedTensor>& k,
                    const Arg<ErasedTensor>& v, const ErasedTensor* mask,
                    AttentionOptions options) {
    const bool alone = prepare(options, region);
    const HeldOptional whole = whole_mask(mask, q, k);
    const ErasedTensor* given = whole;
    if (alone) return Loop::apply<Call>(region, q, k, v, given, options);
    return Fold::apply<Call>(region, q, k, v, given, options);
  }
  template <class Call>
  static auto apply(const Region& region, const Arg<ErasedTensor>& g, const Arg<ErasedTensor>& q,
                    const Arg<ErasedTensor>& k, const Arg<ErasedTensor>& v,
                    const ErasedTensor* mask, const Arg<ErasedTensor>& out,
                    const Arg<ErasedTensor>& logsumexp, AttentionOptions options) {
    const bool alone = prepare(options, region);
    const HeldOptional whole = whole_mask(mask, q, k);
    const ErasedTensor* given = whole;
    if (alone) return Loop::apply<Call>(region, g, q, k, v, given, out, logsumexp, options);
    return Fold::apply<Call>(region, g, q, k, v, given, out, logsumexp, options);
  }
};

}  // namespace kiln::batched
