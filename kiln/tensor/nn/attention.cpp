#include "kiln/tensor/nn/attention.h"

#include <cmath>
#include <limits>

#include "kiln/backend/random_fill.h"
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::functional {

using namespace detail;

namespace {

constexpr const char* kAttentionOp = "scaled_dot_product_attention";

Shape leading(const Shape& s, int dropped) {
  Shape out;
  for (int d = 0; d + dropped < s.rank(); ++d) out.push_back(s[d]);
  return out;
}

Shape joined(Shape lead, std::initializer_list<int64_t> last) {
  for (const int64_t size : last) lead.push_back(size);
  return lead;
}

void check_operands(const Value& q, const Value& k, const Value& v) {
  check_same_device(kAttentionOp, q, k);
  check_same_device(kAttentionOp, q, v);
  if (kind_of_value(q) != Kind::floating || dtype_of_value(k) != dtype_of_value(q) ||
      dtype_of_value(v) != dtype_of_value(q)) {
    throw_error<DTypeError>(kAttentionOp,
                            ": query, key and value must have one floating point dtype; got ",
                            dtype_of_value(q), ", ", dtype_of_value(k), " and ", dtype_of_value(v));
  }
  const Shape &qs = shape_of(q), &ks = shape_of(k), &vs = shape_of(v);
  if (qs.rank() < 2 || ks.rank() < 2 || vs.rank() < 2 || ks.back() != qs.back() ||
      vs[vs.rank() - 2] != ks[ks.rank() - 2]) {
    throw_error<ShapeError>(kAttentionOp, ": the operands do not fit; got query ", qs, ", key ", ks,
                            ", value ", vs, "; expected [.., L, E], [.., S, E] and [.., S, V]");
  }
}

// The leading dims of the result, as heads and all before them.
struct Lead {
  Shape shape;      // of the result
  Shape key_shape;  // of key and value: other heads where those are shared
  int64_t heads = 1, key_heads = 1, batch = 1;

  Lead(const Shape& q, const Shape& k, const Shape& v, bool grouped) {
    if (!grouped) {
      shape = broadcast_shapes(kAttentionOp,
                               broadcast_shapes(kAttentionOp, leading(q, 2), leading(k, 2)),
                               leading(v, 2));
      key_shape = shape;
    } else {
      share_heads(q, k, v);
    }
    if (shape.rank() > 0) {
      heads = shape.back();
      key_heads = key_shape.back();
    }
    for (int d = 0; d + 1 < shape.rank(); ++d) batch *= shape[d];
  }

 private:
  void share_heads(const Shape& q, const Shape& k, const Shape& v) {
    const bool have_heads = q.rank() >= 3 && k.rank() >= 3 && v.rank() >= 3;
    const int64_t query_heads = have_heads ? q[q.rank() - 3] : 0;
    const int64_t shared = have_heads ? k[k.rank() - 3] : 0;
    if (!have_heads || v[v.rank() - 3] != shared || shared == 0 || query_heads % shared != 0) {
      throw_error<ShapeError>(kAttentionOp,
                              ": enable_gqa needs heads (dim -3) of key and value that are equal "
                              "and divide those of query; got query ",
                              q, ", key ", k, ", value ", v);
    }
    shape = broadcast_shapes(
        kAttentionOp, broadcast_shapes(kAttentionOp, leading(q, 3), leading(k, 3)), leading(v, 3));
    key_shape = joined(shape, {shared});
    shape.push_back(query_heads);
  }
};

// x [.., rows, width] as [batch, heads, rows, width].
Value with_heads(const Value& x, const Shape& lead, int64_t batch, int64_t heads) {
  const Shape s = shape_of(x);
  const int64_t rows = s[s.rank() - 2];
  const Shape all = joined(lead, {rows, s.back()});
  const Shape wanted{batch, heads, rows, s.back()};
  if (s == wanted) return x;
  return AD::float_reshape(s == all ? x : AD::float_expand(x, all), wanted);
}

// The mask to be added, broadcast to [batch, heads, L, S] or fit to be.
Value additive_mask(const Tensor& mask, const Value& q, const Lead& lead, int64_t queries,
                    int64_t keys) {
  const Value& m = value_of(kAttentionOp, mask);
  check_same_device(kAttentionOp, q, m);
  const Shape scores = joined(lead.shape, {queries, keys});
  const Shape& given = shape_of(m);
  bool fits = given.rank() <= scores.rank();
  for (int d = 1; fits && d <= given.rank(); ++d) {
    const int64_t size = given[given.rank() - d];
    fits = size == 1 || size == scores[scores.rank() - d];
  }
  if (!fits) {
    throw_error<ShapeError>(kAttentionOp, ": attn_mask does not broadcast to the scores; got ",
                            given, "; expected a shape that broadcasts to ", scores);
  }
  const DType dtype = dtype_of_value(q);
  Value additive = m;
  if (dtype_of_value(m) == DType::boolean) {
    additive = AD::float_mask_fill(full_value(given, 0.0, dtype, q.inner->device()),
                                   Dispatch::bool_not(m.inner),
                                   Scalar(-std::numeric_limits<double>::infinity()));
  } else if (dtype_of_value(m) != dtype) {
    throw_error<DTypeError>(kAttentionOp, ": attn_mask must be bool or of the query's dtype; got ",
                            dtype_of_value(m), "; expected bool or ", dtype);
  }
  if (lead.shape.rank() <= 2) return additive;
  return AD::float_reshape(AD::float_expand(additive, scores),
                           Shape{lead.batch, lead.heads, queries, keys});
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa) {
  KILN_AUTOCAST(lower, scaled_dot_product_attention, query, key, value, attn_mask, dropout_p,
                is_causal, scale, enable_gqa);
  const Value& q = value_of(kAttentionOp, query);
  const Value& k = value_of(kAttentionOp, key);
  const Value& v = value_of(kAttentionOp, value);
  check_operands(q, k, v);
  if (is_causal && attn_mask.defined()) {
    throw_error<ValueError>(kAttentionOp,
                            ": attn_mask and is_causal exclude each other; got both; try a mask "
                            "that is causal itself");
  }
  if (!(dropout_p >= 0.0 && dropout_p <= 1.0)) {
    throw_error<ValueError>(kAttentionOp, ": expected a dropout probability in [0, 1]; got ",
                            dropout_p);
  }
  const Shape qs = shape_of(q);
  const Lead lead(qs, shape_of(k), shape_of(v), enable_gqa);
  const int64_t queries = qs[qs.rank() - 2];
  const int64_t keys = shape_of(k)[shape_of(k).rank() - 2];

  AttentionOptions options;
  options.scale = scale.value_or(1.0 / std::sqrt(static_cast<double>(qs.back())));
  options.causal = is_causal;
  if (dropout_p > 0.0 && dropout_p < 1.0) {
    options.dropout = dropout_p;
    const int64_t weights = lead.batch * lead.heads * queries * keys;
    options.stream = default_generator().reserve(host::random_words(weights, f32));
  }
  std::optional<Value> mask;
  if (attn_mask.defined()) mask = additive_mask(attn_mask, q, lead, queries, keys);
  Value out = AD::float_attention(with_heads(q, lead.shape, lead.batch, lead.heads),
                                  with_heads(k, lead.key_shape, lead.batch, lead.key_heads),
                                  with_heads(v, lead.key_shape, lead.batch, lead.key_heads),
                                  mask ? &*mask : nullptr, options)
                  .first;
  if (dropout_p == 1.0) out = AD::float_mul_scalar(out, Scalar(0.0));
  const Shape wanted = joined(lead.shape, {queries, shape_of(v).back()});
  return wrap(shape_of(out) == wanted ? std::move(out) : AD::float_reshape(std::move(out), wanted));
}

}  // namespace kiln::functional
