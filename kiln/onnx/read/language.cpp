// Operators of the domain com.microsoft for language models: attention with fewer heads of keys and
// a cache, and products with weights of a few bits.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/onnx/read/call.h"
#include "kiln/tensor/elementwise/bitwise.h"
#include "kiln/tensor/shape/rearranging.h"

namespace kiln::onnx {

namespace {

// ---- Weights of a few bits

// Numbers of `bits` bits in bytes [.., n], the first one in the lowest bits: [.., n 8 / bits].
Tensor unpacked(const Tensor& bytes, int64_t bits) {
  Tensor wide = bytes.to(DType::i32);
  if (bits == 8) return wide;
  TensorList parts;
  for (int64_t shift = 0; shift < 8; shift += bits) {
    parts.push_back(bitwise_right_shift(wide, shift).remainder(int64_t{1} << bits));
  }
  return stack(parts, -1).flatten(-2);
}

// A [.., K] times B^T, where B [N, K] is in blocks of block_size numbers along K: uint8 [N, blocks,
// bytes], with a scale and a zero point for each block.
void matmul_of_bits(Call& c) {
  const Tensor a = c.in(0), packed = c.in(1);
  const int64_t inner = c.i("K", 0), outer = c.i("N", 0), bits = c.i("bits", 4);
  const int64_t block = c.i("block_size", 0);
  if (bits != 2 && bits != 4 && bits != 8) c.refuse(concat(bits, " bits"));
  if (inner < 1 || outer < 1 || block < 16 || block > (1 << 20) || (block & (block - 1)) != 0 ||
      inner > (int64_t{1} << 40)) {
    c.fail(concat("K = ", inner, ", N = ", outer, ", block_size = ", block));
  }
  const int64_t blocks = (inner + block - 1) / block, bytes = block * bits / 8;
  if (packed.dtype() != DType::u8 || packed.numel() / outer / blocks != bytes ||
      packed.numel() % (outer * blocks) != 0) {
    c.fail(concat("expected uint8 [", outer, ", ", blocks, ", ", bytes, "]; got ", packed.dtype(),
                  " ", packed.shape()));
  }
  if (a.dim() < 1 || a.size(-1) != inner) c.fail(concat("K = ", inner, " for ", a.shape()));
  const auto for_blocks = [&](const Tensor& x) {
    if (x.numel() != outer * blocks) {
      c.fail(concat("expected ", outer * blocks, " numbers, one for each block; got ", x.shape()));
    }
    return x.reshape({outer, blocks, 1});
  };
  const Tensor scale = for_blocks(c.in(2)).to(a.dtype());
  Tensor weight = unpacked(packed.reshape({outer, blocks, bytes}), bits).to(a.dtype());
  if (!c.has(3)) {
    weight = weight.sub(static_cast<double>(int64_t{1} << (bits - 1)));
  } else if (c.in(3).is_floating_point()) {
    weight = weight.sub(for_blocks(c.in(3)).to(a.dtype()));
  } else {  // packed for each row, filled up to a whole byte
    const Tensor zeros = c.in(3);
    const int64_t row = (blocks * bits + 7) / 8;
    if (zeros.dtype() != DType::u8 || zeros.numel() != outer * row) {
      c.fail(concat("expected zero points uint8 [", outer, ", ", row, "]; got ", zeros.shape()));
    }
    const Tensor all = unpacked(zeros.reshape({outer, row}), bits).narrow(1, 0, blocks);
    weight = weight.sub(all.unsqueeze(-1).to(a.dtype()));
  }
  weight = weight.mul(scale).reshape({outer, blocks * block}).narrow(1, 0, inner);
  if (c.has(4)) c.refuse("g_idx, an order of the columns");
  c.out(functional::linear(a, weight, c.maybe(5)));
}

// ---- Attention with a cache

// Pairs of the first features of x [B, heads, T, D] turned by the angles of their places [B, T].
Tensor turned_by(Call& c, const Tensor& x, const Tensor& places, const Tensor& cosine,
                 const Tensor& sine) {
  const int64_t half = cosine.dim() == 2 ? cosine.size(1) : 0;
  if (half < 1 || !(cosine.shape() == sine.shape()) || 2 * half > x.size(3)) {
    c.fail(
        concat("tables ", cosine.shape(), " and ", sine.shape(), " for ", x.size(3), " features"));
  }
  const Tensor cosines = functional::embedding(places, cosine).unsqueeze(1);
  const Tensor sines = functional::embedding(places, sine).unsqueeze(1);
  const Tensor part = x.narrow(3, 0, 2 * half);
  const bool neighbours = c.i("rotary_interleaved", 0) != 0;
  Tensor a = part.narrow(3, 0, half), b = part.narrow(3, half, half);
  if (neighbours) {
    const Tensor pairs = unflatten(part, 3, {half, 2});
    a = pairs.select(4, 0);
    b = pairs.select(4, 1);
  }
  const Tensor first = a.mul(cosines).sub(b.mul(sines)), second = a.mul(sines).add(b.mul(cosines));
  const Tensor y = neighbours ? stack({first, second}, 4).flatten(3) : cat({first, second}, 3);
  return 2 * half == x.size(3) ? y : cat({y, x.narrow(3, 2 * half, x.size(3) - 2 * half)}, 3);
}

// Queries of `heads` heads meet keys and values of fewer; these are added to a cache, in which each
// sequence has a length of its own. A query sees what is before it, in a window of
// local_window_size.
void group_query_attention(Call& c) {
  const int64_t heads = c.i("num_heads", 0), groups = c.i("kv_num_heads", 0);
  if (heads < 1 || groups < 1 || heads % groups != 0) {
    c.fail(concat("num_heads ", heads, " and kv_num_heads ", groups));
  }
  if (c.has(12) || c.has(13) || c.outputs() > 3) c.refuse("a quantized cache or further outputs");
  const Tensor query = c.in(0);
  if (query.dim() != 3) c.fail(concat("expected queries [B, T, features]; got ", query.shape()));
  const int64_t batch = query.size(0), length = query.size(1);
  const int64_t all_heads = c.has(1) ? heads : heads + 2 * groups;
  if (query.size(2) % all_heads != 0 || query.size(2) == 0) {
    c.fail(concat(query.size(2), " features of ", all_heads, " heads"));
  }
  const int64_t width = query.size(2) / all_heads;
  const auto in_heads = [&](const Tensor& x, int64_t count) {
    if (x.dim() != 3 || x.size(0) != batch || x.size(1) != length || x.size(2) != count * width) {
      c.fail(concat("expected [", batch, ", ", length, ", ", count * width, "]; got ", x.shape()));
    }
    return x.reshape({batch, length, count, width}).transpose(1, 2);
  };
  Tensor q, k, v;
  if (c.has(1)) {
    q = in_heads(query, heads);
    k = in_heads(c.in(1), groups);
    v = in_heads(c.in(2), groups);
  } else {  // beside each other
    q = in_heads(query.narrow(2, 0, heads * width), heads);
    k = in_heads(query.narrow(2, heads * width, groups * width), groups);
    v = in_heads(query.narrow(2, (heads + groups) * width, groups * width), groups);
  }
  const Tensor none = zeros({batch, groups, 0, width}, {.dtype = q.dtype()});
  const Tensor past_k = c.has(3) ? c.in(3) : none, past_v = c.has(4) ? c.in(4) : none;
  for (const Tensor& past : {past_k, past_v}) {
    if (past.dim() != 4 || past.size(0) != batch || past.size(1) != groups ||
        past.size(3) != width) {
      c.fail(concat("expected a cache [", batch, ", ", groups, ", S, ", width, "]; got ",
                    past.shape()));
    }
  }
  if (past_k.size(2) != past_v.size(2)) c.fail("keys and values of different lengths");
  const std::vector<int64_t> most = c.integers(6);
  const int64_t cached = past_k.size(2);
  if (most.size() != 1 || most[0] < length || most[0] > cached + length) {
    c.fail(
        concat("total_sequence_length with ", cached, " keys in the cache and ", length, " new"));
  }
  // Where each sequence ends, with the new keys, and where these begin.
  const Tensor ends = c.in(5).to(DType::i64).reshape({-1, 1}).add(1);
  if (ends.size(0) != batch) c.fail("a length for each sequence");
  const bool is_first = length == most[0];
  const Tensor begins = is_first ? zeros_like(ends) : ends.sub(length);
  const Tensor steps = arange(0, length).unsqueeze(0);
  const Tensor places = begins.add(steps);  // [B, T]
  if (c.i("do_rotary", 0) != 0) {
    Tensor at = c.has(9) ? c.in(9).to(DType::i64).expand({batch, length}) : places;
    q = turned_by(c, q, at, c.in(7), c.in(8));
    k = turned_by(c, k, at, c.in(7), c.in(8));
  }
  // The cache: old keys up to `begins`, new ones behind them, then zeros.
  const int64_t size = std::max(cached, most[0]);
  const Tensor slots = arange(0, size).unsqueeze(0);
  const Tensor from_new = slots.sub(begins).add(cached);
  const Tensor nothing = zeros({batch, size}, {.dtype = DType::i64}).add(cached + length);
  const Tensor source = where(slots.lt(begins), slots.add(zeros_like(begins)),
                              where(slots.lt(begins.add(length)), from_new, nothing));
  const Tensor index = source.unsqueeze(1).unsqueeze(-1).expand({batch, groups, size, width});
  const auto joined = [&](const Tensor& past, const Tensor& now) {
    const Tensor zero = zeros({batch, groups, 1, width}, {.dtype = now.dtype()});
    return cat({past, now, zero}, 2).gather(2, index);
  };
  k = joined(past_k, k);
  v = joined(past_v, v);

  double scale = c.f("scale", 0.0);
  if (scale == 0.0) scale = 1.0 / std::sqrt(static_cast<double>(width));
  const Tensor in_groups = q.reshape({batch, groups, heads / groups, length, width});
  Tensor scores = in_groups.matmul(k.unsqueeze(2).transpose(-1, -2)).mul(scale);
  if (const double cap = c.f("softcap", 0.0); cap > 0.0) {
    scores = scores.div(cap).tanh().mul(cap);
  }
  scores = scores.reshape({batch, heads, length, size});
  if (c.has(10)) {
    const Tensor bias = c.in(10);
    scores = scores.add(bias.size(-1) > size ? bias.narrow(-1, 0, size) : bias);
  }
  const Tensor ahead = slots.unsqueeze(1).sub(places.unsqueeze(-1));  // [B, T, S]
  Tensor hidden = ahead.gt(0);
  if (const int64_t window = c.i("local_window_size", -1); window >= 0) {
    hidden = hidden.logical_or(ahead.le(-window));
  }
  scores = scores.masked_fill(hidden.unsqueeze(1), -std::numeric_limits<double>::infinity());
  if (c.has(11) || c.i("smooth_softmax", 0) != 0) {  // a score that no value belongs to
    const Tensor sink = c.has(11) ? c.in(11).to(scores.dtype()).reshape({1, heads, 1, 1})
                                  : zeros({1, heads, 1, 1}, {.dtype = scores.dtype()});
    scores = cat({scores, sink.expand({batch, heads, length, 1})}, -1).softmax(-1);
    scores = scores.narrow(-1, 0, size);
  } else {
    scores = scores.softmax(-1);
  }
  const Tensor y = scores.reshape({batch, groups, heads / groups, length, size})
                       .matmul(v.unsqueeze(2))
                       .reshape({batch, heads, length, width})
                       .transpose(1, 2);
  c.out(y.reshape({batch, length, heads * width}), 0);
  c.out(k, 1);
  c.out(v, 2);
}

constexpr Operator kLanguageOperators[] = {
    {"com.microsoft.MatMulNBits", matmul_of_bits},
    {"com.microsoft.GroupQueryAttention", group_query_attention},
};

}  // namespace

std::span<const Operator> language_operators() { return kLanguageOperators; }

}  // namespace kiln::onnx
