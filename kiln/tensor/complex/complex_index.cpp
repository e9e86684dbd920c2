// Writing into complex tensors at places that an index names.
#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/index/advanced_index.h"
#include "kiln/tensor/ops.h"

namespace kiln::complex_ops {

using namespace detail;

namespace {

void check_source(const char* op, const Tensor& x, const Tensor& src) {
  if (x.dtype() != src.dtype()) {
    throw_error<DTypeError>(op, ": the source must have the tensor's dtype; got ", x.dtype(),
                            " and ", src.dtype());
  }
}

// Both parts are written, or added, alike; complex numbers have no order.
void check_combination(const char* op, const Tensor& x, Combine combine) {
  if (combine == Combine::amax || combine == Combine::amin) throw_complex(op, x.dtype());
}

// The products of the elements of x with all those of src whose index says their place: those of
// one place are brought side by side, and in log2 steps each is multiplied with more of those
// before it.
Tensor multiplied(const Tensor& x, int d, const Tensor& index, const Tensor& src) {
  if (index.numel() == 0) return x.clone();
  Tensor all_places = arange(0, x.numel(), 1, {i64, x.device()}).reshape(x.shape());
  Tensor used = src;
  for (int i = 0; i < x.dim(); ++i) {
    if (i != d) all_places = all_places.narrow(i, 0, index.size(i));
    used = used.narrow(i, 0, index.size(i));
  }
  const Tensor wanted = all_places.gather(d, index).reshape({-1});
  const auto [place, order] = wanted.sort(0);
  const int64_t n = place.numel();
  Tensor product = used.reshape({-1}).index_select(0, order);
  for (int64_t step = 1; step < n; step *= 2) {
    const Tensor same = place.narrow(0, step, n - step).eq(place.narrow(0, 0, n - step));
    if (!same.any().item<bool>()) break;
    const Tensor before = product.narrow(0, 0, n - step);
    const Tensor later = product.narrow(0, step, n - step);
    product = cat({product.narrow(0, 0, step),
                   later.mul(kiln::where(same, before, ones({}, {x.dtype(), x.device()})))});
  }
  const Tensor is_last = cat(
      {place.narrow(0, 1, n - 1).ne(place.narrow(0, 0, n - 1)), ones({1}, {bool_, x.device()})});
  const Tensor last = nonzero(is_last).reshape({-1});
  const Tensor at = place.index_select(0, last);
  const Tensor flat = x.reshape({-1});
  const Tensor value = flat.index_select(0, at).mul(product.index_select(0, last));
  return written_at("scatter", flat, 0, at, value, Combine::write).reshape(x.shape());
}

Tensor of_parts(const char* op, const Tensor& x,
                Value (*f)(const char*, const ValueArg&, int64_t, const Tensor&, const Tensor&,
                           Combine),
                int dim, const Tensor& index, const Tensor& src, Combine combine) {
  return through_parts(x, [&](const Tensor& p) {
    return wrap(f(op, ValueArg(value_of(op, p)), dim, index, parts_of(src), combine));
  });
}

}  // namespace

Tensor parts_index(const Tensor& index) {
  Shape shape = index.shape();
  shape.push_back(2);
  return index.unsqueeze(-1).expand(shape);
}

Tensor scattered(const char* op, const Tensor& x, int64_t dim, const Tensor& index,
                 const Tensor& src, Combine combine) {
  impl_of(op, x);
  impl_of(op, src);
  check_source(op, x, src);
  check_combination(op, x, combine);
  const int d = parts_dim(op, x, dim);
  if (x.dim() == 0) {
    return scattered(op, x.reshape({1}), 0, index.reshape({-1}), src.reshape({-1}), combine)
        .reshape({});
  }
  check_scatter(op, x.shape(), src.shape(), index.shape(), d);
  if (combine == Combine::prod) return multiplied(x, d, index, src);
  return of_parts(op, x, &detail::scattered, d, parts_index(index), src, combine);
}

Tensor written_at(const char* op, const Tensor& x, int64_t dim, const Tensor& index,
                  const Tensor& src, Combine combine) {
  impl_of(op, x);
  impl_of(op, src);
  check_source(op, x, src);
  check_combination(op, x, combine);
  const int d = parts_dim(op, x, dim);
  if (x.dim() == 0) {
    return written_at(op, x.reshape({1}), 0, index.reshape({-1}), src.reshape({1}), combine)
        .reshape({});
  }
  const Tensor rows = src.dim() == 0 && x.dim() == 1 ? src.reshape({1}) : src;
  return of_parts(op, x, &detail::written_at, d, index, rows, combine);
}

}  // namespace kiln::complex_ops
