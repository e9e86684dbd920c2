// Scaled dot-product attention: one query at a time.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::make;
using reference::Ops;
using reference::read;
using reference::Tensor;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// The operands as doubles, and what one query makes of them.
struct Attention {
  Attention(const Tensor& q, const Tensor& k, const Tensor& v, const HostHandle* m,
            const AttentionOptions& o)
      : heads(static_cast<size_t>(q->shape()[1])),
        queries(static_cast<size_t>(q->shape()[2])),
        width(static_cast<size_t>(q->shape()[3])),
        key_heads(static_cast<size_t>(k->shape()[1])),
        keys(static_cast<size_t>(k->shape()[2])),
        values(static_cast<size_t>(v->shape()[3])),
        rows(static_cast<size_t>(q->shape()[0]) * heads * queries),
        qs(read<double>(q)),
        ks(read<double>(k)),
        vs(read<double>(v)),
        options(o) {
    if (m != nullptr) {
      mask = read<double>(*m, Shape{q->shape()[0], q->shape()[1], q->shape()[2], k->shape()[2]});
    }
  }

  // Row r is a query; the head of keys that it meets.
  size_t key_head(size_t r) const {
    const size_t head = r / queries % heads;
    return r / queries / heads * key_heads + head / (heads / key_heads);
  }

  // Weights of row r before dropout, and the logsumexp of its scores.
  std::vector<double> weights(size_t r, double* lse) const {
    const double* q = &qs[r * width];
    std::vector<double> scores(keys);
    double most = -kInf;
    for (size_t s = 0; s < keys; ++s) {
      const double* k = &ks[(key_head(r) * keys + s) * width];
      double dot = 0.0;
      for (size_t e = 0; e < width; ++e) dot += q[e] * k[e];
      scores[s] = options.scale * dot + (mask.empty() ? 0.0 : mask[r * keys + s]);
      if (options.causal && s > r % queries) scores[s] = -kInf;
      if (!(scores[s] <= most)) most = scores[s];
      if (std::isnan(most)) break;
    }
    *lse = most;
    if (most == -kInf) return std::vector<double>(keys, 0.0);
    double sum = 0.0;
    for (double& x : scores) sum += x = std::exp(x - most);
    for (double& x : scores) x /= sum;
    *lse = most + std::log(sum);
    return scores;
  }

  // What dropout multiplies weight s of row r with.
  double kept(size_t r, size_t s) const {
    if (options.dropout == 0.0) return 1.0;
    const size_t i = r * keys + s;
    const double draw = uniform_f32(options.stream.block(i / 4)[i % 4]);
    return draw >= options.dropout ? 1.0 / (1.0 - options.dropout) : 0.0;
  }

  size_t heads, queries, width, key_heads, keys, values, rows;
  std::vector<double> qs, ks, vs, mask;
  AttentionOptions options;
};

DType statistics_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace

std::pair<HostHandle, HostHandle> Ops::float_attention(Tensor q, Tensor k, Tensor v,
                                                       const HostHandle* mask,
                                                       const AttentionOptions& options) {
  const Attention a(q, k, v, mask, options);
  std::vector<double> out(a.rows * a.values, 0.0);
  std::vector<double> lses(a.rows);
  for (size_t r = 0; r < a.rows; ++r) {
    const std::vector<double> weights = a.weights(r, &lses[r]);
    for (size_t s = 0; s < a.keys; ++s) {
      const double weight = weights[s] * a.kept(r, s);
      for (size_t c = 0; c < a.values; ++c) {
        out[r * a.values + c] += weight * a.vs[(a.key_head(r) * a.keys + s) * a.values + c];
      }
    }
  }
  const Shape& qs = q->shape();
  return {make(Shape{qs[0], qs[1], qs[2], v->shape()[3]}, q->dtype(), q->device(), out),
          make(Shape{qs[0], qs[1], qs[2]}, statistics_dtype(q->dtype()), q->device(), lses)};
}

// Output and logsumexp are computed again.
std::tuple<HostHandle, HostHandle, HostHandle> Ops::float_attention_backward(
    Tensor g, Tensor q, Tensor k, Tensor v, const HostHandle* mask, Tensor, Tensor,
    const AttentionOptions& options) {
  const Attention a(q, k, v, mask, options);
  const std::vector<double> gs = read<double>(g);
  std::vector<double> gq(a.qs.size(), 0.0);
  std::vector<double> gk(a.ks.size(), 0.0);
  std::vector<double> gv(a.vs.size(), 0.0);
  for (size_t r = 0; r < a.rows; ++r) {
    double lse = 0.0;
    const std::vector<double> weights = a.weights(r, &lse);
    const double* row_g = &gs[r * a.values];
    std::vector<double> grads(a.keys, 0.0);  // of the weights, then of the scores
    double total = 0.0;
    for (size_t s = 0; s < a.keys; ++s) {
      const size_t key = a.key_head(r) * a.keys + s;
      const double kept = a.kept(r, s);
      for (size_t c = 0; c < a.values; ++c) {
        gv[key * a.values + c] += weights[s] * kept * row_g[c];
        grads[s] += kept * row_g[c] * a.vs[key * a.values + c];
      }
      total += weights[s] * grads[s];
    }
    for (size_t s = 0; s < a.keys; ++s) {
      const size_t key = a.key_head(r) * a.keys + s;
      const double score = options.scale * weights[s] * (grads[s] - total);
      for (size_t e = 0; e < a.width; ++e) {
        gq[r * a.width + e] += score * a.ks[key * a.width + e];
        gk[key * a.width + e] += score * a.qs[r * a.width + e];
      }
    }
  }
  return {make(q->shape(), q->dtype(), q->device(), gq),
          make(k->shape(), k->dtype(), k->device(), gk),
          make(v->shape(), v->dtype(), v->device(), gv)};
}

}  // namespace kiln
