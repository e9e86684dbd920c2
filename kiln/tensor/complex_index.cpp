// Writing into complex tensors at places that an index names.
#include "kiln/tensor/complex_ops.h"
#include "kiln/tensor/creation.h"

namespace kiln::complex_ops {

using namespace detail;

namespace {

void check_source(const char* op, const Tensor& x, const Tensor& src) {
  if (x.dtype() != src.dtype()) {
    throw_error<DTypeError>(op, ": the source must have the tensor's dtype; got ", x.dtype(),
                            " and ", src.dtype());
  }
}

// Both parts are written, or added, alike; what multiplies or compares them is not.
void check_combination(const char* op, const Tensor& x, Combine combine) {
  if (combine != Combine::write && combine != Combine::add) throw_complex(op, x.dtype());
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
