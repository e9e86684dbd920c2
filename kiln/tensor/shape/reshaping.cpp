// Methods of Tensor that give views: other shapes, other orders of dims, parts.
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/ops.h"

namespace kiln {

using namespace detail;

namespace {

// An op that gives a view of x, by kind.
#define KILN_VIEW(op_label, x, value, op, ...)                                                \
  wrap_view(                                                                                  \
      x,                                                                                      \
      by_kind(                                                                                \
          op_label, kind_of_value(value), [&] { return AD::float_##op(value, __VA_ARGS__); }, \
          [&] { return Dispatch::int_##op((value).inner, __VA_ARGS__); },                     \
          [&] { return Dispatch::bool_##op((value).inner, __VA_ARGS__); }, dtype_of_value(value)))

// Replaces a -1 by what the other sizes leave.
Shape inferred_shape(const char* op, const Shape& from, const Shape& to) {
  Shape shape = to;
  int unknown = -1;
  int64_t known = 1;
  for (int i = 0; i < to.rank(); ++i) {
    if (to[i] == -1) {
      if (unknown >= 0) {
        throw_error<ShapeError>(op, ": only one size may be -1; got ", to);
      }
      unknown = i;
    } else if (to[i] < 0) {
      throw_error<ShapeError>(op, ": a size is negative; got ", to, "; expected sizes >= 0, or -1");
    } else if (__builtin_mul_overflow(known, to[i], &known)) {
      throw_error<ShapeError>(op, ": the sizes overflow; got ", to);
    }
  }
  const int64_t total = from.numel();
  if (unknown >= 0) {
    if (known == 0 || total % known != 0) {
      throw_error<ShapeError>(op, ": the elements do not divide over the shape; got ", from, " (",
                              total, " elements) to ", to, "; expected sizes that divide them");
    }
    shape[unknown] = total / known;
  } else if (known != total) {
    throw_error<ShapeError>(op, ": the number of elements differs; got ", from, " (", total,
                            " elements) to ", to, " (", known, " elements)");
  }
  checked_numel(op, shape);
  return shape;
}

bool shares_memory(const Value& a, const Value& b) {
  // A reshape that had to copy owns its memory; one that did not shares it with its operand.
  return !Dispatch::owns_memory(b.inner) || a.inner == b.inner;
}

}  // namespace

Tensor Tensor::reshape(const Shape& shape) const {
  const Value& x = parts_or_value("reshape", *this);
  const Shape to = inferred_shape("reshape", state_of(*this).shape(), shape);
  if (has_complex(*this)) [[unlikely]] {
    return through_parts(*this, [&](const Tensor& p) { return p.reshape(parts_shape(to)); });
  }
  if (kind_of_value(x) == Kind::quantized) {
    const QuantScheme scheme = Dispatch::q_scheme(x.inner);
    if (scheme.level != QuantLevel::tensor || scheme.bits != 8) {
      throw_error<ValueError>(
          "reshape: a quantized tensor keeps its shape unless it has one scale ",
          "and 8 bits; got ", shape_of(x), " to ", to, "; try dequantize()");
    }
    return wrap(Dispatch::q_reshape(x.inner, to));
  }
  return KILN_VIEW("reshape", *this, x, reshape, to);
}

Tensor Tensor::view(const Shape& shape) const {
  const Value& x = parts_or_value("view", *this);
  const Shape to = inferred_shape("view", state_of(*this).shape(), shape);
  if (has_complex(*this)) [[unlikely]] {
    return through_parts(*this, [&](const Tensor& p) { return p.view(parts_shape(to)); });
  }
  Tensor out = KILN_VIEW("view", *this, x, reshape, to);
  if (numel() > 0 && !shares_memory(x, out.impl()->value)) {
    throw_error<ShapeError>("view: the strides do not allow a view of this shape; got ",
                            shape_of(x), " with strides ", stride(), " to ", to,
                            "; try reshape(), or contiguous() first");
  }
  return out;
}

Tensor Tensor::permute(const Dims& dims) const {
  const Value& x = parts_or_value("permute", *this);
  const Shape& shape = state_of(*this).shape();
  Dims order = normalize_dims("permute", dims, shape.rank());
  if (order.rank() != shape.rank()) {
    throw_error<ShapeError>("permute: every dim must be named once; got ", dims, " for shape ",
                            shape);
  }
  if (has_complex(*this)) [[unlikely]] {
    order.push_back(order.rank());
    return through_parts(*this, [&](const Tensor& p) { return p.permute(order); });
  }
  return KILN_VIEW("permute", *this, x, permute, order);
}

Tensor Tensor::transpose(int64_t dim0, int64_t dim1) const {
  const Value& x = parts_or_value("transpose", *this);
  const int rank = state_of(*this).shape().rank();
  const int a = normalize_dim("transpose", dim0, rank);
  const int b = normalize_dim("transpose", dim1, rank);
  if (has_complex(*this)) [[unlikely]] {
    return through_parts(*this, [&](const Tensor& p) { return rank > 0 ? p.transpose(a, b) : p; });
  }
  Dims order = all_dims(rank);
  if (rank > 0) std::swap(order[a], order[b]);
  return KILN_VIEW("transpose", *this, x, permute, order);
}

Tensor Tensor::t() const {
  const Shape& shape = impl_of("t", *this).shape();
  if (shape.rank() > 2) {
    throw_error<ShapeError>("t: takes a tensor of at most 2 dims; got ", shape,
                            "; try transpose(dim0, dim1)");
  }
  return shape.rank() == 2 ? transpose(0, 1) : *this;
}

Tensor Tensor::expand(const Shape& shape) const {
  const Value& x = parts_or_value("expand", *this);
  const Shape& from = state_of(*this).shape();
  const int lead = shape.rank() - from.rank();
  Shape to = shape;
  bool fits = lead >= 0;
  for (int i = 0; fits && i < to.rank(); ++i) {
    if (i >= lead && to[i] == -1) to[i] = from[i - lead];
    fits = to[i] >= 0 && (i < lead || from[i - lead] == to[i] || from[i - lead] == 1);
  }
  if (!fits) {
    throw_error<ShapeError>("expand: the shape does not broadcast; got ", from, " to ", shape,
                            "; expected equal sizes, or 1 where they differ");
  }
  checked_numel("expand", to);
  if (has_complex(*this)) [[unlikely]] {
    return through_parts(*this, [&](const Tensor& p) { return p.expand(parts_shape(to)); });
  }
  return KILN_VIEW("expand", *this, x, expand, to);
}

Tensor Tensor::squeeze() const {
  Shape to;
  for (int64_t size : impl_of("squeeze", *this).shape()) {
    if (size != 1) to.push_back(size);
  }
  return reshape(to);
}

Tensor Tensor::squeeze(int64_t dim) const {
  Shape to = impl_of("squeeze", *this).shape();
  const int d = normalize_dim("squeeze", dim, to.rank());
  if (to.rank() > 0 && to[d] == 1) to.erase(d);
  return reshape(to);
}

Tensor Tensor::unsqueeze(int64_t dim) const {
  Shape to = impl_of("unsqueeze", *this).shape();
  const int d = normalize_dim("unsqueeze", dim, to.rank() + 1);
  to.insert(d, 1);
  return reshape(to);
}

Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim) const {
  const Shape& from = impl_of("flatten", *this).shape();
  const int start = normalize_dim("flatten", start_dim, from.rank());
  const int end = normalize_dim("flatten", end_dim, from.rank());
  if (from.rank() == 0) return reshape({1});
  if (start > end) {
    throw_error<IndexError>("flatten: start_dim comes after end_dim; got ", start_dim, " and ",
                            end_dim, " for shape ", from);
  }
  Shape to;
  int64_t run = 1;
  for (int i = 0; i < from.rank(); ++i) {
    if (i < start || i > end) {
      to.push_back(from[i]);
    } else {
      run *= from[i];
      if (i == end) to.push_back(run);
    }
  }
  return reshape(to);
}

Tensor Tensor::flip(const Dims& dims) const {
  const Value& x = parts_or_value("flip", *this);
  const Dims d = normalize_dims("flip", dims, state_of(*this).shape().rank());
  if (state_of(*this).shape().rank() == 0) return clone();
  if (has_complex(*this)) [[unlikely]] {
    return through_parts(*this, [&](const Tensor& p) { return p.flip(d); });
  }
  return wrap(by_kind(
      "flip", kind_of_value(x), [&] { return AD::float_flip(x, d); },
      [&] { return Dispatch::int_flip(x.inner, d); },
      [&] { return Dispatch::bool_flip(x.inner, d); }, dtype_of_value(x)));
}

// ---- Basic index

namespace {

Tensor slice_range(const char* op, const Tensor& x, int dim, Range range) {
  if (has_complex(x)) [[unlikely]] {
    return through_parts(x, [&](const Tensor& p) { return slice_range(op, p, dim, range); });
  }
  const Value& value = value_of(op, x);
  return KILN_VIEW(op, x, value, slice, dim, range);
}

}  // namespace

Tensor Tensor::slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                     int64_t step) const {
  const Shape& s = impl_of("slice", *this).shape();
  if (s.rank() == 0) {
    throw_error<IndexError>("slice: a 0-d tensor has no dim to slice; expected at least 1 dim");
  }
  const int d = normalize_dim("slice", dim, s.rank());
  return slice_range("slice", *this, d, resolve_slice("slice", Slice(start, end, step), s[d]));
}

Tensor Tensor::select(int64_t dim, int64_t index) const {
  const Shape& s = impl_of("select", *this).shape();
  if (s.rank() == 0) {
    throw_error<IndexError>("select: a 0-d tensor cannot be indexed; try item()");
  }
  const int d = normalize_dim("select", dim, s.rank());
  if (index < -s[d] || index >= s[d]) {
    throw_error<IndexError>("select: index out of range; got ", index, " for dim ", d, " of shape ",
                            s, "; expected ", -s[d], " <= index < ", s[d]);
  }
  const int64_t i = index < 0 ? index + s[d] : index;
  Shape to = s;
  to.erase(d);
  return slice_range("select", *this, d, Range{i, i + 1, 1}).reshape(to);
}

Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const {
  const Shape& s = impl_of("narrow", *this).shape();
  const int d = normalize_dim("narrow", dim, s.rank());
  const int64_t size = s.rank() == 0 ? 0 : s[d];
  const int64_t first = start < 0 ? start + size : start;
  if (s.rank() == 0 || first < 0 || length < 0 || length > size - first) {
    throw_error<IndexError>("narrow: the range is outside the dim; got start ", start, ", length ",
                            length, " for dim ", dim, " of shape ", s);
  }
  return slice_range("narrow", *this, d, Range{first, first + length, 1});
}

Tensor Tensor::index(std::span<const IndexItem> items) const {
  using Type = IndexItem::Type;
  const int rank = impl_of("index", *this).shape().rank();
  int consumed = 0;
  int ellipses = 0;
  for (const IndexItem& item : items) {
    consumed += item.type == Type::integer || item.type == Type::slice;
    ellipses += item.type == Type::ellipsis;
  }
  if (consumed > rank) {
    throw_error<IndexError>("index: too many indices; got ", consumed, " for shape ", shape());
  }
  if (ellipses > 1) throw_error<IndexError>("index: only one Ellipsis may appear; got ", ellipses);
  Tensor out = *this;
  int at = 0;
  for (const IndexItem& item : items) {
    switch (item.type) {
      case Type::integer:
        out = out.select(at, item.integer);
        break;
      case Type::slice:
        out = out.slice(at++, item.slice.start, item.slice.end, item.slice.step);
        break;
      case Type::none:
        out = out.unsqueeze(at++);
        break;
      case Type::ellipsis:
        at += rank - consumed;
        break;
    }
  }
  return out;
}

std::vector<Tensor> Tensor::split(int64_t size, int64_t dim) const {
  const Shape& s = impl_of("split", *this).shape();
  if (s.rank() == 0) throw_error<ShapeError>("split: a 0-d tensor cannot be split");
  const int d = normalize_dim("split", dim, s.rank());
  if (size < 0 || (size == 0 && s[d] != 0)) {
    throw_error<ValueError>("split: the size of a part must be positive; got ", size);
  }
  std::vector<Tensor> parts;
  if (has_complex(*this)) [[unlikely]] {
    for (const Tensor& part : parts_of(*this).split(size, d)) parts.push_back(from_parts(part));
    return parts;
  }
  if (const Value& value = value_of("split", *this); kind_of_value(value) == Kind::floating) {
    for (Value& part : AD::split(value, d, std::max<int64_t>(size, 1))) {
      parts.push_back(wrap_view(*this, std::move(part), ViewKind::one_of_many));
    }
    if (parts.empty()) parts.push_back(*this);
    return parts;
  }
  for (int64_t start = 0; start < s[d]; start += size) {
    parts.push_back(slice_range("split", *this, d, Range{start, std::min(start + size, s[d]), 1}));
  }
  if (parts.empty()) parts.push_back(*this);
  return parts;
}

std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t dim) const {
  if (chunks < 1) throw_error<ValueError>("chunk: expected at least 1 chunk; got ", chunks);
  const Shape& s = impl_of("chunk", *this).shape();
  if (s.rank() == 0) throw_error<ShapeError>("chunk: a 0-d tensor cannot be split");
  const int64_t size = s[normalize_dim("chunk", dim, s.rank())];
  if (size == 0) {
    std::vector<Tensor> parts;
    checked_numel("chunk", {chunks});
    for (int64_t i = 0; i < chunks; ++i) parts.push_back(one_of_many(*this, narrow(dim, 0, 0)));
    return parts;
  }
  return split(std::max<int64_t>(1, size / chunks + (size % chunks != 0)), dim);
}

std::vector<Tensor> Tensor::unbind(int64_t dim) const {
  const Shape& s = impl_of("unbind", *this).shape();
  if (s.rank() == 0) throw_error<ShapeError>("unbind: a 0-d tensor has no dim to unbind");
  const int d = normalize_dim("unbind", dim, s.rank());
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < s[d]; ++i) parts.push_back(one_of_many(*this, select(d, i)));
  return parts;
}

}  // namespace kiln
