// Operators of the domain com.microsoft, which ONNX Runtime's optimizer and exporters write.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/core/utf8.h"
#include "kiln/onnx/read/layers.h"
#include "kiln/onnx/read/window.h"
#include "kiln/tensor/nn/activations.h"
#include "kiln/tensor/shape/rearranging.h"

namespace kiln::onnx {

namespace {

// ---- Products and activations

void fused_matmul(Call& c) {
  if (c.i("transBatchA", 0) != 0 || c.i("transBatchB", 0) != 0)
    c.refuse("transBatchA, transBatchB");
  const auto side = [&](size_t i, const char* name) {
    const Tensor x = c.in(i);
    return c.i(name, 0) != 0 && x.dim() > 1 ? x.transpose(-2, -1) : x;
  };
  const Tensor y = side(0, "transA").matmul(side(1, "transB"));
  const double alpha = c.f("alpha", 1.0);
  c.out(alpha == 1.0 ? y : y.mul(alpha));
}
// After the activation that a fused node names; its numbers are attributes of their own for
// products, and a list for convolutions.
Tensor fused_activation(Call& c, const Tensor& x) {
  const std::string name = c.s("activation", "");
  const auto* list = c.attribute("activation_params");
  const auto number = [&](size_t i, const char* attribute, double otherwise) {
    if (list != nullptr && i < list->floats.size()) return static_cast<double>(list->floats[i]);
    return c.f(attribute, otherwise);
  };
  if (name.empty()) return x;
  if (name == "Relu") return x.relu();
  if (name == "Tanh") return x.tanh();
  if (name == "Sigmoid") return x.sigmoid();
  if (name == "LeakyRelu") return functional::leaky_relu(x, number(0, "activation_alpha", 0.01));
  if (name == "Clip") {
    return x.clamp(number(0, "activation_alpha", std::numeric_limits<float>::lowest()),
                   number(1, "activation_beta", std::numeric_limits<float>::max()));
  }
  if (name == "HardSigmoid") {
    return x.mul(number(0, "activation_alpha", 0.2))
        .add(number(1, "activation_beta", 0.5))
        .clamp(0.0, 1.0);
  }
  c.refuse("the activation '" + printable(name, 40) + "'");
}
void fused_gemm(Call& c) { c.out(fused_activation(c, general_product(c))); }
void fused_conv(Call& c) {
  const Tensor y = convolve(c, c.in(0), c.in(1), c.maybe(2));
  c.out(fused_activation(c, c.has(3) ? y.add(c.in(3)) : y));
}
void microsoft_gelu(Call& c) { c.out(c.in(0).gelu()); }
void bias_gelu(Call& c) { c.out(c.in(0).add(c.in(1)).gelu()); }
void fast_gelu(Call& c) {
  const Tensor x = c.has(1) ? c.in(0).add(c.in(1)) : c.in(0);
  c.out(x.gelu("tanh"));
}
void quick_gelu(Call& c) {
  const Tensor x = c.in(0);
  c.out(x.mul(x.mul(c.f("alpha", 1.702)).sigmoid()));
}

// ---- Norms

// Over the dims from `axis` on.
struct Normal {
  Tensor y, mean, scale;
};
Normal layer_normal(const Tensor& x, int64_t axis, const Tensor& weight, const Tensor& bias,
                    double epsilon) {
  Dims dims;
  for (int64_t d = axis; d < x.dim(); ++d) dims.push_back(d);
  Normal out;
  out.mean = x.mean(dims, true);
  const Tensor d = x.sub(out.mean);
  out.scale = d.square().mean(dims, true).add(epsilon).rsqrt();
  out.y = d.mul(out.scale).mul(weight);
  if (bias.defined()) out.y = out.y.add(bias);
  return out;
}
Normal root_normal(const Tensor& x, int64_t axis, const Tensor& weight, double epsilon) {
  Dims dims;
  for (int64_t d = axis; d < x.dim(); ++d) dims.push_back(d);
  Normal out;
  out.scale = x.square().mean(dims, true).add(epsilon).rsqrt();
  out.y = x.mul(out.scale).mul(weight);
  return out;
}

template <bool kSimplified>
void skip_layer_norm(Call& c) {
  const size_t bias = kSimplified ? 3 : 4;
  Tensor sum = c.in(0).add(c.in(1));
  if (c.has(bias)) sum = sum.add(c.in(bias));
  if (sum.dim() < 1) c.fail("expected a dim of features");
  const double epsilon = c.f("epsilon", 1e-12);
  const Normal n = kSimplified ? root_normal(sum, sum.dim() - 1, c.in(2), epsilon)
                               : layer_normal(sum, sum.dim() - 1, c.in(2), c.maybe(3), epsilon);
  c.out(n.y, 0);
  c.out(n.mean, 1);
  c.out(n.scale, 2);
  c.out(sum, 3);
}
// It has no domain, though ONNX does not define it.
void simplified_layer_norm(Call& c) {
  const Tensor x = c.in(0);
  const Normal n = root_normal(x, c.axis_of("axis", -1, x.dim()), c.in(1), c.f("epsilon", 1e-5));
  c.out(n.y, 0);
  c.out(n.scale, 1);
}

// Words, places and kinds of words, normalized.
void embed_layer_norm(Call& c) {
  const Tensor ids = c.in(0);
  if (ids.dim() != 2) c.fail(concat("expected ids [B, T]; got ", ids.shape()));
  Tensor place = c.has(8) ? c.in(8).to(DType::i64) : arange(0, ids.size(1)).unsqueeze(0);
  Tensor sum =
      functional::embedding(ids.to(DType::i64), c.in(2)).add(functional::embedding(place, c.in(3)));
  if (c.has(4)) sum = sum.add(functional::embedding(c.in(1).to(DType::i64), c.in(4)));
  c.out(layer_normal(sum, 2, c.in(5), c.in(6), c.f("epsilon", 1e-12)).y, 0);
  c.out(c.has(7) ? c.in(7).ne(0).sum({1}).to(DType::i32)
                 : zeros({ids.size(0)}, {.dtype = DType::i32}),
        1);
  c.out(sum, 2);
}

// ---- Attention

Tensor in_heads(Call& c, const Tensor& x, int64_t heads) {  // [B, T, heads E] as [B, heads, T, E]
  if (x.dim() != 3 || heads < 1 || x.size(2) % heads != 0) {
    c.fail(concat("expected [B, T, features] of ", heads, " heads; got ", x.shape()));
  }
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

// What a mask adds to the scores [B, heads, T, S]: lengths [B], or 1 for what is seen: [B, S] or
// [B, T, S].
Tensor of_mask(Call& c, const Tensor& mask, int64_t batch, int64_t keys, DType dtype) {
  Tensor seen = mask;
  if (mask.dim() == 1 && mask.size(0) == batch) {
    seen = arange(0, keys).unsqueeze(0).lt(mask.to(DType::i64).unsqueeze(1));
  } else if (mask.dim() != 2 && mask.dim() != 3) {
    c.refuse(concat("a mask of shape ", mask.shape()));
  }
  if (seen.size(-1) != keys) {
    c.fail(concat("a mask ", mask.shape(), " for ", keys, " keys"));
  }
  seen = seen.dim() == 2 ? seen.unsqueeze(1).unsqueeze(1) : seen.unsqueeze(1);
  return seen.eq(0).to(dtype).mul(c.f("mask_filter_value", -10000.0));
}

// q [B, heads, T, E], k [B, heads, S, E], v [B, heads, S, V]: [B, T, heads V].
Tensor attended(Call& c, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                const Tensor& bias) {
  if (k.size(2) != v.size(2) || k.size(3) != q.size(3)) {
    c.fail(concat("queries ", q.shape(), ", keys ", k.shape(), " and values ", v.shape()));
  }
  const int64_t length = q.size(2), keys = k.size(2);
  double scale = c.f("scale", 0.0);
  if (scale == 0.0) scale = 1.0 / std::sqrt(static_cast<double>(q.size(3)));
  Tensor scores = q.matmul(k.transpose(2, 3)).mul(scale);
  if (mask.defined()) scores = scores.add(of_mask(c, mask, q.size(0), keys, q.dtype()));
  if (bias.defined()) scores = scores.add(bias);
  if (c.i("unidirectional", 0) != 0) {
    const Tensor ahead = arange(0, keys).unsqueeze(0).sub(arange(0, length).unsqueeze(1));
    scores = scores.masked_fill(ahead.gt(keys - length), -std::numeric_limits<double>::infinity());
  }
  const Tensor y = scores.softmax(-1).matmul(v).transpose(1, 2);
  return y.reshape({y.size(0), length, y.size(2) * y.size(3)});
}

// Of one input, by weights for queries, keys and values beside each other.
void microsoft_attention(Call& c) {
  const Tensor x = c.in(0), weight = c.in(1);
  const int64_t heads = c.i("num_heads", 0);
  if (c.i("do_rotary", 0) != 0 || c.i("past_present_share_buffer", 0) != 0) {
    c.refuse("do_rotary or past_present_share_buffer");
  }
  if (x.dim() != 3 || weight.dim() != 2 || x.size(2) != weight.size(0)) {
    c.fail(concat("expected [B, T, E] and weights [E, 3 H]; got ", x.shape(), " and ",
                  weight.shape()));
  }
  std::vector<int64_t> sizes = c.ints("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, weight.size(1) / 3);
  if (sizes.size() != 3 || sizes[0] < 0 || sizes[1] < 0 || sizes[2] < 0 ||
      sizes[0] + sizes[1] + sizes[2] != weight.size(1)) {
    c.fail("qkv_hidden_sizes that are those of the weights");
  }
  Tensor all = x.matmul(weight);
  if (c.has(2)) all = all.add(c.in(2));
  const Tensor q = in_heads(c, all.narrow(2, 0, sizes[0]), heads);
  Tensor k = in_heads(c, all.narrow(2, sizes[0], sizes[1]), heads);
  Tensor v = in_heads(c, all.narrow(2, sizes[0] + sizes[1], sizes[2]), heads);
  if (c.has(4)) {  // [2, B, heads, S, E]
    k = cat({c.in(4).select(0, 0), k}, 2);
    v = cat({c.in(4).select(0, 1), v}, 2);
  }
  c.out(attended(c, q, k, v, c.maybe(3), c.maybe(5)), 0);
  if (c.outputs() > 1) c.out(stack({k, v}, 0), 1);
}

void multi_head_attention(Call& c) {
  const int64_t heads = c.i("num_heads", 0);
  const Tensor query = c.in(0);
  if (c.has(8) || c.has(9)) c.refuse("a shared cache");
  // Queries, keys and values beside each other: [B, T, heads, 3, E], or keys and values alone.
  if (query.dim() == 5) {
    if (c.has(3)) c.refuse("a bias of packed queries");
    const auto part = [&](int64_t i) { return query.select(3, i).transpose(1, 2); };
    return c.out(attended(c, part(0), part(1), part(2), c.maybe(4), c.maybe(5)));
  }
  Tensor bias[3];
  const int64_t width = query.dim() == 3 ? query.size(2) : 0;
  if (c.has(3)) {
    const Tensor all = c.in(3);
    if (all.dim() != 1 || all.numel() < 2 * width) c.fail("a bias for queries, keys and values");
    bias[0] = all.narrow(0, 0, width);
    bias[1] = all.narrow(0, width, width);
    bias[2] = all.narrow(0, 2 * width, all.numel() - 2 * width);
  }
  const auto part = [&](size_t i) {
    Tensor x = c.in(i);
    if (x.dim() == 4) return x;  // in heads already
    return in_heads(c, bias[i].defined() ? x.add(bias[i]) : x, heads);
  };
  Tensor k, v;
  if (c.in(1).dim() == 5) {
    k = c.in(1).select(3, 0).transpose(1, 2);
    v = c.in(1).select(3, 1).transpose(1, 2);
  } else {
    k = part(1);
    v = part(2);
  }
  if (c.has(6)) k = cat({c.in(6), k}, 2);
  if (c.has(7)) v = cat({c.in(7), v}, 2);
  c.out(attended(c, part(0), k, v, c.maybe(4), c.maybe(5)), 0);
  c.out(k, 1);
  c.out(v, 2);
}

// [B, heads, T, D], or [B, T, heads D]; positions [B, T], or the first one.
void rotary(Call& c) {
  Tensor x = c.in(0), cosine = c.in(2), sine = c.in(3);
  const bool flat = x.dim() == 3;
  if (c.i("is_packed_batching", 0) != 0) c.refuse("is_packed_batching");
  if (cosine.dim() != 2 || !(cosine.shape() == sine.shape())) c.fail("expected tables [T, D / 2]");
  int64_t turned = c.i("rotary_embedding_dim", 0);
  int64_t heads = c.i("num_heads", 0);
  if (flat && heads == 0) heads = x.size(2) / std::max<int64_t>(1, 2 * cosine.size(1));
  if (flat) x = in_heads(c, x, heads);
  if (x.dim() != 4) c.fail(concat("expected three or four dims; got ", x.shape()));
  if (turned == 0) turned = x.size(3);
  if (turned < 0 || turned > x.size(3) || turned != 2 * cosine.size(1)) {
    c.fail(concat("tables of ", cosine.size(1), " angles for ", turned, " features"));
  }
  Tensor place = c.in(1).to(DType::i64);
  if (place.numel() == 1 && x.size(2) != 1) {
    place = arange(0, x.size(2)).unsqueeze(0).add(place.reshape({}));
  }
  const Tensor cosines = functional::embedding(place.reshape({-1, x.size(2)}), cosine).unsqueeze(1);
  const Tensor sines = functional::embedding(place.reshape({-1, x.size(2)}), sine).unsqueeze(1);
  const Tensor part = x.narrow(3, 0, turned);
  const bool neighbours = c.i("interleaved", 0) != 0;
  Tensor a, b;
  if (neighbours) {
    const Tensor pairs = unflatten(part, 3, {turned / 2, 2});
    a = pairs.select(4, 0);
    b = pairs.select(4, 1);
  } else {
    a = part.narrow(3, 0, turned / 2);
    b = part.narrow(3, turned / 2, turned / 2);
  }
  const Tensor first = a.mul(cosines).sub(b.mul(sines)), second = a.mul(sines).add(b.mul(cosines));
  Tensor y = neighbours ? stack({first, second}, 4).flatten(3) : cat({first, second}, 3);
  if (turned < x.size(3)) y = cat({y, x.narrow(3, turned, x.size(3) - turned)}, 3);
  c.out(flat ? y.transpose(1, 2).reshape(c.in(0).shape()) : y);
}

constexpr Operator kContributedOperators[] = {
    {"SimplifiedLayerNormalization", simplified_layer_norm},
    {"com.microsoft.FusedMatMul", fused_matmul},
    {"com.microsoft.FusedGemm", fused_gemm},
    {"com.microsoft.FusedConv", fused_conv},
    {"com.microsoft.Gelu", microsoft_gelu},
    {"com.microsoft.BiasGelu", bias_gelu},
    {"com.microsoft.FastGelu", fast_gelu},
    {"com.microsoft.QuickGelu", quick_gelu},
    {"com.microsoft.SkipLayerNormalization", skip_layer_norm<false>},
    {"com.microsoft.SkipSimplifiedLayerNormalization", skip_layer_norm<true>},
    {"com.microsoft.EmbedLayerNormalization", embed_layer_norm},
    {"com.microsoft.Attention", microsoft_attention},
    {"com.microsoft.MultiHeadAttention", multi_head_attention},
    {"com.microsoft.RotaryEmbedding", rotary},
};

}  // namespace

std::span<const Operator> contributed_operators() { return kContributedOperators; }

}  // namespace kiln::onnx
