// Attention, with every mask that a node may ask for.
#include <cmath>

#include "kiln/onnx/read/call.h"
#include "kiln/tensor/nn/convolution.h"

namespace kiln::onnx {

namespace {

// [N, L, heads E] as [N, heads, L, E].
Tensor with_heads(Call& c, const Tensor& x, int64_t heads) {
  if (heads < 1 || x.dim() != 3 || x.size(2) % heads != 0) c.fail("a number of heads that fits");
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}).permute({0, 2, 1, 3});
}

// Which keys a query does not see, by their places: true where it does not. A query stands behind
// the keys of the cache; `there`, if any, says for each batch how many keys count.
Tensor hidden_keys(Call& c, int64_t length, int64_t keys, int64_t past, const Tensor& there) {
  Tensor place = arange(0, length).unsqueeze(1);
  if (there.defined()) {
    place = place.add(there.reshape({-1, 1, 1, 1})).sub(length);
  } else {
    place = place.add(past);
  }
  const Tensor key = arange(0, keys).unsqueeze(0), ahead = key.sub(place);
  Tensor hidden = there.defined() ? key.ge(there.reshape({-1, 1, 1, 1})) : Tensor();
  const auto hide = [&](const Tensor& more) {
    hidden = hidden.defined() ? hidden.logical_or(more) : more;
  };
  if (c.i("is_causal", 0) != 0) hide(ahead.gt(0));
  const int64_t left = c.i("left_window_size", -1), right = c.i("right_window_size", -1);
  if (left < -1 || right < -1) c.fail("a window of a negative size");
  if (left >= 0) hide(ahead.lt(-left));
  if (right >= 0) hide(ahead.gt(right));
  return hidden;
}

// Numbers to add to the scores; what a mask does not reach is hidden.
Tensor additive_mask(const Tensor& given, DType dtype, int64_t keys) {
  const double hidden = -std::numeric_limits<double>::infinity();
  Tensor mask = given;
  if (mask.dtype() == DType::boolean) {
    const Tensor zero = zeros(mask.shape(), {.dtype = dtype});
    mask = kiln::where(mask, zero, full_like(zero, hidden));
  }
  const int64_t there = mask.size(-1);
  return there < keys ? functional::pad(mask, {0, keys - there}, "constant", hidden) : mask;
}

void attention(Call& c) {
  Tensor q = c.in(0), k = c.in(1), v = c.in(2);
  const bool flat = q.dim() == 3;
  if (flat) {
    q = with_heads(c, q, c.i("q_num_heads", 0));
    k = with_heads(c, k, c.i("kv_num_heads", 0));
    v = with_heads(c, v, c.i("kv_num_heads", 0));
  }
  if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4) {
    c.fail("expected tensors of three or four dims");
  }
  int64_t past = 0;
  if (c.has(4)) {
    past = c.in(4).size(2);
    k = cat({c.in(4), k}, 2);
    v = cat({c.in(5), v}, 2);
  }
  const Tensor there = c.has(6) ? c.in(6).to(DType::i64) : Tensor();
  if (there.defined() && c.has(4)) c.fail("a cache and lengths of keys");
  c.out(k, 1);
  c.out(v, 2);
  const int64_t heads = q.size(1), own = k.size(1), length = q.size(2), keys = k.size(2);
  if (own < 1 || heads % own != 0) c.fail("heads of queries that are a multiple of those of keys");
  const auto each_head = [&](const Tensor& x) {
    return own == heads ? x : repeat_interleave(x, heads / own, 1);
  };
  const double scale = c.f("scale", 1.0 / std::sqrt(static_cast<double>(q.size(3))));
  const double root = std::sqrt(scale), cap = c.f("softcap", 0.0);
  // Which of the steps is the fourth output.
  const int64_t shown = c.i("qk_matmul_output_mode", 0);
  Tensor scores = q.mul(root).matmul(each_head(k).mul(root).transpose(2, 3));
  if (shown == 0) c.out(scores, 3);
  if (cap > 0.0) scores = scores.div(cap).tanh().mul(cap);
  if (shown == 1) c.out(scores, 3);
  if (c.has(3)) scores = scores.add(additive_mask(c.in(3), scores.dtype(), keys));
  const Tensor hidden = hidden_keys(c, length, keys, past, there);
  if (hidden.defined()) {
    scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  }
  if (shown == 2) c.out(scores, 3);
  Tensor weights = scores.softmax(-1);
  weights = kiln::where(weights.isnan(), zeros_like(weights), weights);  // it sees no key
  if (shown == 3) c.out(weights, 3);
  Tensor y = weights.matmul(each_head(v));
  if (flat) y = y.permute({0, 2, 1, 3}).reshape({y.size(0), length, heads * y.size(3)});
  c.out(y, 0);
}

// Attention [B, heads, T, E] whose scores and weights graphs of the node may change.
void flex_attention(Call& c) {
  const Tensor q = c.in(0), k = c.in(1), v = c.in(2);
  if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4 || k.size(1) < 1 || q.size(1) % k.size(1) != 0) {
    c.fail("expected tensors of four dims, and heads of queries that are a multiple of the keys'");
  }
  DType dtype = q.dtype() == DType::f64 ? DType::f64 : DType::f32;
  if (c.has("softmax_precision")) dtype = dtype_of_number(c.i("softmax_precision", 1));
  const int64_t times = q.size(1) / k.size(1);
  const auto each_head = [&](const Tensor& x) {
    return (times == 1 ? x : repeat_interleave(x, times, 1)).to(dtype);
  };
  const auto changed = [&](const char* graph, const Tensor& x) {
    if (!c.has_graph(graph)) return x;
    const Values out = c.run(graph, {{.tensor = x}});
    if (out.size() != 1 || !out[0].tensor.defined() || !(out[0].tensor.shape() == x.shape())) {
      c.fail(concat("the graph ", graph, " gives no tensor of shape ", x.shape()));
    }
    return out[0].tensor;
  };
  const double scale = c.f("scale", 1.0 / std::sqrt(static_cast<double>(q.size(3))));
  const Tensor scores = q.to(dtype).matmul(each_head(k).transpose(2, 3)).mul(scale);
  const Tensor weights = changed("prob_mod", changed("score_mod", scores).softmax(-1));
  c.out(weights.matmul(each_head(v)).to(q.dtype()));
}

// Depthwise, over what was before and the input [B, C, L].
void causal_conv(Call& c) {
  const Tensor x = c.in(0), weight = c.in(1);
  const std::string activation = c.s("activation", "none");
  if (x.dim() != 3 || weight.dim() != 3) c.fail("expected [B, C, L] and a weight [C, 1, K]");
  if (activation != "none" && activation != "silu" && activation != "swish") {
    c.refuse("another activation than silu");
  }
  const int64_t before = weight.size(2) - 1;
  const Tensor past =
      c.has(3) ? c.in(3) : zeros({x.size(0), x.size(1), before}, {.dtype = x.dtype()});
  const Tensor all = cat({past, x}, 2);
  const Tensor y = functional::conv1d(all, weight, c.maybe(2), 1, 0, 1, x.size(1));
  c.out(activation == "none" ? y : y.mul(y.sigmoid()), 0);
  c.out(all.narrow(2, all.size(2) - before, before), 1);
}

// A state [B, heads, DK, DV] that keys write values into and queries read, step by step: it fades
// by a decay (Gated Linear Attention, Yang et al., 2023), and a key writes what its value differs
// by from what the state has for it (DeltaNet, Yang et al., 2024).
void linear_attention(Call& c) {
  const std::string rule = c.s("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") c.refuse(concat("the rule ", rule));
  const int64_t heads = c.i("q_num_heads", 0), own = c.i("kv_num_heads", 0);
  if (own < 1 || heads < 1 || heads % own != 0) {
    c.fail("expected q_num_heads that are a multiple of kv_num_heads");
  }
  const DType dtype = c.in(0).dtype();
  const auto split = [&](size_t i, int64_t n) { return with_heads(c, c.in(i), n).to(DType::f32); };
  const Tensor q = split(0, heads), k = split(1, own), v = split(2, own);
  Tensor decay, beta;  // [B, own, T, 1 or DK] and [B, own or 1, T, 1]
  if (gated) decay = split(4, own).exp();
  if (delta) beta = split(5, c.in(5).dim() == 3 ? c.in(5).size(2) : 0);
  Tensor state = c.has(3) ? c.in(3).to(DType::f32)
                          : zeros({q.size(0), own, k.size(3), v.size(3)}, {.dtype = DType::f32});
  double scale = c.f("scale", 0.0);
  if (scale == 0.0) scale = 1.0 / std::sqrt(static_cast<double>(q.size(3)));
  std::vector<Tensor> outputs;
  for (int64_t t = 0; t < q.size(2); ++t) {
    const Tensor key = k.select(2, t).unsqueeze(3);  // [B, own, DK, 1]
    Tensor value = v.select(2, t).unsqueeze(2);      // [B, own, 1, DV]
    if (gated) state = state.mul(decay.select(2, t).unsqueeze(3));
    if (delta) {
      const Tensor there = state.mul(key).sum({2}, true);
      value = value.sub(there).mul(beta.select(2, t).unsqueeze(3));
    }
    state = state.add(key.mul(value));
    const Tensor read = own == heads ? state : repeat_interleave(state, heads / own, 1);
    outputs.push_back(read.mul(q.select(2, t).unsqueeze(3)).sum({2}).mul(scale));
  }
  if (outputs.empty()) c.refuse("a sequence of no steps");
  const Tensor y = stack(outputs, 1);  // [B, T, heads, DV]
  c.out(y.flatten(2).to(dtype), 0);
  c.out(state.to(c.has(3) ? c.in(3).dtype() : dtype), 1);
}

constexpr Operator kAttentionOperators[] = {
    {"Attention", attention},
    {"CausalConvWithState", causal_conv},
    {"LinearAttention", linear_attention},
    {"ai.onnx.preview.FlexAttention", flex_attention},
};

}  // namespace

std::span<const Operator> attention_operators() { return kAttentionOperators; }

}  // namespace kiln::onnx
