#include "kiln/tensor/index/scatter.h"

#include <limits>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/index/advanced_index.h"
#include "kiln/tensor/index/index_ops.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/value_check.h"

namespace kiln {

using namespace detail;

namespace {

// An op in place, from what computes its result: f(x as it is handed over).
template <class F>
Tensor& in_place(const char* op, Tensor& x, const Tensor& src, F f) {
  const Value& value = value_of(op, x);
  check_writable(op, x, static_cast<bool>(value_of(op, src).node));
  finish_in_place(op, x, f(ValueArg::in_place(value)));
  return x;
}
template <class F>
Tensor pure(const char* op, const Tensor& x, F f) {
  return wrap(f(ValueArg(value_of(op, x))));
}

// Of a complex tensor: f(x as it may be read).
template <class F>
Tensor& complex_in_place(const char* op, Tensor& x, const Tensor& src, F f) {
  check_writable(op, x, src.requires_grad());
  return complex_ops::assign(op, x, f(complex_ops::kept(x, src)));
}

// A number as a source that an index covers.
Tensor spread(Scalar value, const Tensor& x, const Tensor& index) {
  return full({}, value, {x.dtype(), x.device()}).expand(index.shape());
}

Combine combine_of(const char* op, const std::string& reduce) {
  if (reduce.empty()) return Combine::write;
  if (reduce == "add") return Combine::add;
  if (reduce == "multiply") return Combine::prod;
  throw_error<ValueError>(op, ": expected reduce 'add' or 'multiply'; got '", reduce, "'");
}

// Negative indices counted from the front.
Tensor from_front(const char* op, const Tensor& index, int64_t size) {
  const Tensor i = wrap(index_value(op, index));
  if (i.numel() == 0) return i;
  const auto has_negative = [op, size](const Tensor& x) {
    const auto low = x.min().item<int64_t>();
    const auto high = x.max().item<int64_t>();
    if (low < -size || high >= size) {
      throw_error<IndexError>(op, ": index out of range; got ", low < -size ? low : high,
                              " for a tensor of ", size, " elements");
    }
    return low < 0;
  };
  if (check_again(op, i, has_negative)) return kiln::where(i.lt(0), i.add(size), i);
  return has_negative(i) ? kiln::where(i.lt(0), i.add(size), i) : i;
}

// ---- Reductions

struct Reduction {
  Combine combine;
  bool mean = false;
};

Reduction reduction_of(const char* op, const std::string& reduce) {
  if (reduce == "sum") return {Combine::add};
  if (reduce == "mean") return {Combine::add, true};
  if (reduce == "prod") return {Combine::prod};
  if (reduce == "amax") return {Combine::amax};
  if (reduce == "amin") return {Combine::amin};
  throw_error<ValueError>(op, ": expected reduce 'sum', 'prod', 'mean', 'amax' or 'amin'; got '",
                          reduce, "'");
}

// What changes nothing when it is combined.
Tensor neutral(Combine combine, DType dtype, Device device) {
  if (combine == Combine::add) return zeros({}, {dtype, device});
  if (combine == Combine::prod) return ones({}, {dtype, device});
  const bool largest = combine == Combine::amax;
  if (is_floating_point(dtype)) {
    const double inf = std::numeric_limits<double>::infinity();
    return full({}, largest ? -inf : inf, {dtype, device});
  }
  if (dtype == bool_) return full({}, !largest, {bool_, device});
  const int64_t end = visit_int("neutral", dtype, [&]<class T>() {
    return static_cast<int64_t>(largest ? std::numeric_limits<T>::min()
                                        : std::numeric_limits<T>::max());
  });
  return full({}, end, {dtype, device});
}

// How many values each element of `total` is the sum of, 1 at least.
Tensor counts(const Tensor& total, int64_t dim, const Tensor& index, bool include_self) {
  // Half the memory, where no count can leave it.
  const TensorOptions options{index.numel() < std::numeric_limits<int32_t>::max() ? i32 : i64,
                              total.device()};
  const Tensor own = include_self ? ones(total.shape(), options) : zeros(total.shape(), options);
  return own.scatter_add(dim, index, ones({}, options).expand(index.shape())).clamp(1);
}

Tensor complex_reduced(const char* op, const Tensor& x, int64_t dim, const Tensor& index,
                       const Tensor& src, const std::string& reduce, bool include_self) {
  const Reduction how = reduction_of(op, reduce);
  Tensor start = x;
  if (!include_self) {
    const double number = how.combine == Combine::prod ? 1 : 0;
    const Tensor none = full({}, number, {x.dtype(), x.device()}).expand(index.shape());
    start = complex_ops::scattered(op, x, dim, index, none, Combine::write);
  }
  const Tensor sums = complex_ops::scattered(op, start, dim, index, src, how.combine);
  if (!how.mean) return sums;
  return sums.div(counts(sums, dim, index, include_self).to(real_dtype(sums.dtype())));
}

Value scatter_reduced(const char* op, const ValueArg& x, int64_t dim, const Tensor& index,
                      const Tensor& src, const std::string& reduce, bool include_self) {
  const Reduction how = reduction_of(op, reduce);
  if (how.mean && kind_of_value(x) == Kind::boolean) {
    throw_wrong_dtype(op, bool_, "numbers for 'mean'");
  }
  Value start = x.get();
  if (!include_self) {
    const Tensor none = neutral(how.combine, dtype_of_value(x), src.device());
    start = scattered(op, start, dim, index, none.expand(index.shape()), Combine::write);
  }
  const ValueArg to = include_self && !how.mean ? x : ValueArg(start);
  const Value sums = scattered(op, to, dim, index, src, how.combine);
  if (!how.mean) return sums;
  const Tensor total = wrap(sums);
  const Tensor count = counts(total, dim, index, include_self);
  return value_of(op, is_floating_point(total.dtype())
                          ? total.div(count.to(total.dtype()))
                          : total.floor_divide(count.to(total.dtype())));
}

// A 1-d index of slices as one of elements.
Tensor spread_over_slices(const char* op, const Tensor& index, const Tensor& x, int64_t dim) {
  const int d = normalize_dim(op, dim, x.dim());
  if (index.dim() > 1) {
    throw_error<ShapeError>(op, ": the index must have at most 1 dim; got ", index.shape());
  }
  Shape shape = x.shape();
  if (x.dim() == 0) return index.reshape({-1});
  Shape row = Shape::filled(x.dim(), 1);
  shape[d] = row[d] = index.numel();
  return index.reshape(row).expand(shape);
}

// The index of slices as one of elements, for an op that reduces.
Tensor reduced_places(const char* op, const Tensor& x, int64_t dim, const Tensor& index,
                      const Tensor& source, const std::string& reduce) {
  if (reduce == "sum") {
    throw_error<ValueError>(
        op, ": expected reduce 'prod', 'mean', 'amax' or 'amin'; got 'sum'; try index_add");
  }
  const Tensor places = spread_over_slices(op, index, x, dim);
  if (!(source.shape() == places.shape()) && x.dim() > 0) {
    throw_error<ShapeError>(op, ": the source does not fit; got ", source.shape(), "; expected ",
                            places.shape());
  }
  return places;
}

Value index_reduced(const char* op, const ValueArg& x, int64_t dim, const Tensor& index,
                    const Tensor& source, const std::string& reduce, bool include_self) {
  const Tensor places = reduced_places(op, wrap(x.get()), dim, index, source, reduce);
  return scatter_reduced(op, x, dim, places, source, reduce, include_self);
}

Tensor complex_index_reduced(const char* op, const Tensor& x, int64_t dim, const Tensor& index,
                             const Tensor& source, const std::string& reduce, bool include_self) {
  const Tensor places = reduced_places(op, x, dim, index, source, reduce);
  return complex_reduced(op, x, dim, places, source, reduce, include_self);
}

// Indices of which negative ones count from the end. Others are checked where they are used.
Tensor from_front(const Tensor& index, const Shape& shape, int dim) {
  if (!is_integral(index.dtype()) || shape.rank() == 0) return index;
  return where(index.lt(0), index.add(shape[dim]), index);
}

Value index_filled(const char* op, const ValueArg& x, int64_t dim, const Tensor& index,
                   const Tensor& value) {
  if (value.dim() != 0) {
    throw_error<ShapeError>(op, ": expected a number or a 0-d tensor; got ", value.shape());
  }
  Shape shape = shape_of(x);
  const int d = normalize_dim(op, dim, shape.rank());
  if (shape.rank() > 0) shape[d] = index.numel();
  if (index.numel() == 0) return x.is_in_place() ? x.get() : value_of(op, wrap(x.get()).clone());
  const Tensor source = value.to(dtype_of_value(x)).expand(shape.rank() > 0 ? shape : Shape{});
  return written_at(op, x, dim, from_front(index, shape_of(x), d), source, Combine::write);
}

Tensor complex_filled(const char* op, const Tensor& x, int64_t dim, const Tensor& index,
                      const Tensor& value) {
  if (value.dim() != 0) {
    throw_error<ShapeError>(op, ": expected a number or a 0-d tensor; got ", value.shape());
  }
  if (!has_complex(x)) throw_complex(op, value.dtype());
  Shape shape = x.shape();
  const int d = normalize_dim(op, dim, shape.rank());
  if (shape.rank() > 0) shape[d] = index.numel();
  return complex_ops::written_at(op, x, dim, from_front(index, x.shape(), d),
                                 value.to(x.dtype()).expand(shape), Combine::write);
}

Tensor complex_put(const char* op, const Tensor& x, const Tensor& index, const Tensor& source,
                   bool accumulate) {
  if (source.numel() != index.numel()) {
    throw_error<ShapeError>(op, ": expected an element for each index; got ", source.shape(),
                            " for index ", index.shape());
  }
  const Tensor places = from_front(op, index.reshape({-1}), x.numel());
  return complex_ops::scattered(op, x.reshape({-1}), 0, places, source.reshape({-1}),
                                accumulate ? Combine::add : Combine::write)
      .reshape(x.shape());
}

Value put_value(const char* op, const ValueArg& x, const Tensor& index, const Tensor& source,
                bool accumulate) {
  const Tensor whole = wrap(x.get());
  if (source.numel() != index.numel()) {
    throw_error<ShapeError>(op, ": expected an element for each index; got ", source.shape(),
                            " for index ", index.shape());
  }
  const Tensor places = from_front(op, index.reshape({-1}), whole.numel());
  const Combine combine = accumulate ? Combine::add : Combine::write;
  const Tensor flat = source.reshape({-1});
  if (x.is_in_place() && whole.dim() == 1) return scattered(op, x, 0, places, flat, combine);
  const Tensor out =
      wrap(scattered(op, value_of(op, whole.reshape({-1})), 0, places, flat, combine));
  return value_of(op, out.reshape(whole.shape()));
}

// The places where the mask holds, in a tensor of this shape as one row.
Tensor places_of(const char* op, const Tensor& mask, const Shape& shape, const Tensor& source) {
  bool_value(op, mask);
  if (!broadcasts_to(mask.shape(), shape)) {
    throw_error<ShapeError>(op, ": the mask does not broadcast; got ", mask.shape(), " for ",
                            shape);
  }
  const Tensor places = nonzero(mask.expand(shape).reshape({-1})).reshape({-1});
  if (source.numel() < places.numel()) {
    throw_error<ShapeError>(op, ": the source has too few elements; got ", source.numel(),
                            "; expected at least ", places.numel());
  }
  return places;
}

Value masked_scattered(const char* op, const ValueArg& x, const Tensor& mask,
                       const Tensor& source) {
  const Tensor places = places_of(op, mask, shape_of(x), source);
  const Tensor flat = source.reshape({-1}).narrow(0, 0, places.numel());
  return put_value(op, x, places, flat, false);
}

Tensor complex_masked(const char* op, const Tensor& x, const Tensor& mask, const Tensor& source) {
  const Tensor places = places_of(op, mask, x.shape(), source);
  return complex_put(op, x, places, source.reshape({-1}).narrow(0, 0, places.numel()), false);
}

}  // namespace

// ---- Reading

Tensor take(const Tensor& x, const Tensor& index) {
  const Tensor places = from_front("take", index, x.numel());
  return x.reshape({-1}).index_select(0, places.reshape({-1})).reshape(index.shape());
}

Tensor take_along_dim(const Tensor& x, const Tensor& indices, std::optional<int64_t> dim) {
  if (!dim) {
    const Tensor places = from_front("take_along_dim", indices.reshape({-1}), x.numel());
    return x.reshape({-1}).gather(0, places);
  }
  if (x.dim() != indices.dim()) {
    throw_error<ShapeError>("take_along_dim: expected as many dims; got ", x.shape(),
                            " and indices ", indices.shape());
  }
  const int d = normalize_dim("take_along_dim", *dim, x.dim());
  Shape from = x.shape();
  Shape to = indices.shape();
  if (x.dim() == 0) return x.gather(0, indices);
  from[d] = to[d] = 1;
  Shape shape = broadcast_shapes("take_along_dim", from, to);
  shape[d] = x.shape()[d];
  const Tensor source = x.expand(shape);
  shape[d] = indices.shape()[d];
  const Tensor places = from_front("take_along_dim", indices, x.shape()[d]);
  return source.gather(d, places.expand(shape));
}

namespace {

// Rows of indices as one index into the leading dims of x taken as one; `lead`: how many.
Tensor leading_index(const char* op, const Tensor& x, const Tensor& indices, int* lead) {
  if (indices.dim() == 0 || indices.size(-1) > x.dim()) {
    throw_error<ShapeError>(op, ": expected rows of at most ", x.dim(), " indices; got ",
                            indices.shape(), " for ", x.shape());
  }
  *lead = static_cast<int>(indices.size(-1));
  const Tensor i = wrap(index_value(op, indices));
  Shape rows = indices.shape();
  rows.erase(rows.rank() - 1);
  Tensor out = zeros(rows, {i64, x.device()});
  for (int d = 0; d < *lead; ++d) {
    const Tensor along = from_front(op, i.select(-1, d), x.shape()[d]);
    out = out.mul(x.shape()[d]).add(along);
  }
  return out;
}

// x with its first `lead` dims as one.
Tensor leading_as_one(const Tensor& x, int lead) {
  Shape shape{1};
  for (int d = 0; d < x.dim(); ++d) {
    if (d < lead) {
      shape[0] *= x.shape()[d];
    } else {
      shape.push_back(x.shape()[d]);
    }
  }
  return x.reshape(shape);
}

}  // namespace

Tensor gather_nd(const Tensor& x, const Tensor& indices) {
  int lead = 0;
  const Tensor places = leading_index("gather_nd", x, indices, &lead);
  Shape shape = places.shape();
  for (int d = lead; d < x.dim(); ++d) shape.push_back(x.shape()[d]);
  return leading_as_one(x, lead).index_select(0, places.reshape({-1})).reshape(shape);
}

Tensor argwhere(const Tensor& x) { return nonzero(x); }

std::vector<Tensor> where(const Tensor& condition) {
  if (condition.dim() == 0) return nonzero(condition.reshape({1})).unbind(1);
  return nonzero(condition).unbind(1);
}

// ---- Writing elements

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
               const std::string& reduce) {
  if (has_complex(x, src)) {
    return complex_ops::scattered("scatter", x, dim, index, src, combine_of("scatter", reduce));
  }
  return pure("scatter", x, [&](const ValueArg& v) {
    return scattered("scatter", v, dim, index, src, combine_of("scatter", reduce));
  });
}
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, Scalar value,
               const std::string& reduce) {
  return scatter(x, dim, index, spread(value, x, index), reduce);
}
Tensor& scatter_(Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                 const std::string& reduce) {
  if (has_complex(x, src)) {
    return complex_in_place("scatter_", x, src, [&](const Tensor& u) {
      return complex_ops::scattered("scatter_", u, dim, index, src, combine_of("scatter_", reduce));
    });
  }
  return in_place("scatter_", x, src, [&](const ValueArg& v) {
    return scattered("scatter_", v, dim, index, src, combine_of("scatter_", reduce));
  });
}
Tensor& scatter_(Tensor& x, int64_t dim, const Tensor& index, Scalar value,
                 const std::string& reduce) {
  return scatter_(x, dim, index, spread(value, x, index), reduce);
}
Tensor& scatter_add_(Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  if (has_complex(x, src)) {
    return complex_in_place("scatter_add_", x, src, [&](const Tensor& u) {
      return complex_ops::scattered("scatter_add_", u, dim, index, src, Combine::add);
    });
  }
  return in_place("scatter_add_", x, src, [&](const ValueArg& v) {
    return scattered("scatter_add_", v, dim, index, src, Combine::add);
  });
}
Tensor scatter_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                      const std::string& reduce, bool include_self) {
  if (has_complex(x, src)) {
    return complex_reduced("scatter_reduce", x, dim, index, src, reduce, include_self);
  }
  return pure("scatter_reduce", x, [&](const ValueArg& v) {
    return scatter_reduced("scatter_reduce", v, dim, index, src, reduce, include_self);
  });
}
Tensor& scatter_reduce_(Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                        const std::string& reduce, bool include_self) {
  if (has_complex(x, src)) {
    return complex_in_place("scatter_reduce_", x, src, [&](const Tensor& u) {
      return complex_reduced("scatter_reduce_", u, dim, index, src, reduce, include_self);
    });
  }
  return in_place("scatter_reduce_", x, src, [&](const ValueArg& v) {
    return scatter_reduced("scatter_reduce_", v, dim, index, src, reduce, include_self);
  });
}
Tensor put(const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate) {
  if (has_complex(x, source)) {
    return complex_put("put", x, index, source, accumulate);
  }
  return pure("put", x,
              [&](const ValueArg& v) { return put_value("put", v, index, source, accumulate); });
}
Tensor& put_(Tensor& x, const Tensor& index, const Tensor& source, bool accumulate) {
  if (has_complex(x, source)) {
    return complex_in_place("put_", x, source, [&](const Tensor& u) {
      return complex_put("put_", u, index, source, accumulate);
    });
  }
  return in_place("put_", x, source, [&](const ValueArg& v) {
    return put_value("put_", v, index, source, accumulate);
  });
}

// ---- Writing slices

Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  KILN_AUTOCAST(widest, index_copy, x, dim, index, source);
  if (has_complex(x, source)) {
    return complex_ops::written_at("index_copy", x, dim, index, source, Combine::write);
  }
  return pure("index_copy", x, [&](const ValueArg& v) {
    return written_at("index_copy", v, dim, index, source, Combine::write);
  });
}
Tensor& index_copy_(Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  if (has_complex(x, source)) {
    return complex_in_place("index_copy_", x, source, [&](const Tensor& u) {
      return complex_ops::written_at("index_copy_", u, dim, index, source, Combine::write);
    });
  }
  return in_place("index_copy_", x, source, [&](const ValueArg& v) {
    return written_at("index_copy_", v, dim, index, source, Combine::write);
  });
}
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
  if (has_complex(x, value)) {
    return complex_filled("index_fill", x, dim, index, value);
  }
  return pure("index_fill", x,
              [&](const ValueArg& v) { return index_filled("index_fill", v, dim, index, value); });
}
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, Scalar value) {
  return index_fill(x, dim, index, full({}, value, {x.dtype(), x.device()}));
}
Tensor& index_fill_(Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
  if (has_complex(x, value)) {
    return complex_in_place("index_fill_", x, value, [&](const Tensor& u) {
      return complex_filled("index_fill_", u, dim, index, value);
    });
  }
  return in_place("index_fill_", x, value, [&](const ValueArg& v) {
    return index_filled("index_fill_", v, dim, index, value);
  });
}
Tensor& index_fill_(Tensor& x, int64_t dim, const Tensor& index, Scalar value) {
  return index_fill_(x, dim, index, full({}, value, {x.dtype(), x.device()}));
}
Tensor& index_add_(Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                   Scalar alpha) {
  const bool one =
      alpha.is_integral() && (x.dtype() == bool_ ? alpha.to_bool() : alpha.to_int() == 1);
  const Tensor scaled = one                       ? source
                        : source.dtype() == bool_ ? zeros_like(source)
                                                  : source.mul(alpha);
  if (has_complex(x, scaled)) {
    return complex_in_place("index_add_", x, scaled, [&](const Tensor& u) {
      return complex_ops::written_at("index_add_", u, dim, index, scaled, Combine::add);
    });
  }
  return in_place("index_add_", x, scaled, [&](const ValueArg& v) {
    return written_at("index_add_", v, dim, index, scaled, Combine::add);
  });
}
Tensor index_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                    const std::string& reduce, bool include_self) {
  if (has_complex(x, source)) {
    return complex_index_reduced("index_reduce", x, dim, index, source, reduce, include_self);
  }
  return pure("index_reduce", x, [&](const ValueArg& v) {
    return index_reduced("index_reduce", v, dim, index, source, reduce, include_self);
  });
}
Tensor& index_reduce_(Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                      const std::string& reduce, bool include_self) {
  if (has_complex(x, source)) {
    return complex_in_place("index_reduce_", x, source, [&](const Tensor& u) {
      return complex_index_reduced("index_reduce_", u, dim, index, source, reduce, include_self);
    });
  }
  return in_place("index_reduce_", x, source, [&](const ValueArg& v) {
    return index_reduced("index_reduce_", v, dim, index, source, reduce, include_self);
  });
}

Tensor scatter_nd(const Tensor& x, const Tensor& indices, const Tensor& values,
                  const std::string& reduce) {
  int lead = 0;
  const Tensor places = leading_index("scatter_nd", x, indices, &lead);
  Shape expected = places.shape();
  for (int d = lead; d < x.dim(); ++d) expected.push_back(x.shape()[d]);
  if (!(values.shape() == expected)) {
    throw_error<ShapeError>("scatter_nd: the values do not fit; got ", values.shape(),
                            "; expected ", expected);
  }
  const Tensor rows = leading_as_one(x, lead);
  Shape source = rows.shape();
  source[0] = places.numel();
  const Tensor from = values.reshape(source);
  const Tensor at = places.reshape({-1});
  Tensor out;
  if (reduce.empty()) {
    out = index_copy(rows, 0, at, from);
  } else if (reduce == "sum") {
    out = rows.index_add(0, at, from);
  } else {
    out = index_reduce(rows, 0, at, from, reduce);
  }
  return out.reshape(x.shape());
}

// ---- Masks

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value) {
  bool_value("masked_fill", mask);
  if (value.dim() != 0) {
    throw_error<ShapeError>("masked_fill: expected a number or a 0-d tensor; got ", value.shape());
  }
  return kiln::where(mask, value.to(x.dtype()), x);
}
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
  const Shape shape = broadcast_shapes("masked_scatter", x.shape(), mask.shape());
  if (has_complex(x, source)) {
    return complex_masked("masked_scatter", x.expand(shape), mask, source);
  }
  return pure("masked_scatter", x.expand(shape), [&](const ValueArg& v) {
    return masked_scattered("masked_scatter", v, mask, source);
  });
}
Tensor& masked_scatter_(Tensor& x, const Tensor& mask, const Tensor& source) {
  if (has_complex(x, source)) {
    return complex_in_place("masked_scatter_", x, source, [&](const Tensor& u) {
      return complex_masked("masked_scatter_", u, mask, source);
    });
  }
  return in_place("masked_scatter_", x, source, [&](const ValueArg& v) {
    return masked_scattered("masked_scatter_", v, mask, source);
  });
}

}  // namespace kiln
