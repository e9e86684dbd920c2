#include "kiln/tensor/shape/joining.h"

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/autograd/formula.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/shape/rearranging.h"

namespace kiln {

using namespace detail;

namespace {

// Some of the tensors are complex: the others become it.
Tensor complex_cat(std::span<const Tensor> tensors, int64_t dim) {
  const int rank = impl_of("cat", tensors[0]).shape().rank();
  if (rank == 0) throw_error<ShapeError>("cat: a 0-d tensor cannot be joined; try stack");
  const int d = normalize_dim("cat", dim, rank);
  DType common = tensors[0].dtype();
  for (const Tensor& t : tensors) {
    common = promote_types(common, t.dtype());
    if (t.dim() != rank) {
      throw_error<ShapeError>("cat: shapes may differ only in dim ", d, "; got ",
                              tensors[0].shape(), " and ", t.shape());
    }
  }
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) parts.push_back(parts_of(t.to(common)));
  return from_parts(cat(std::span<const Tensor>(parts), d));
}

// Whether t is an empty 1-d tensor, which PyTorch joins with tensors of every shape: what a loop
// begins with that appends to a tensor.
bool is_nothing(const Tensor& t) {
  const Shape& shape = impl_of("cat", t).shape();
  return shape.rank() == 1 && shape[0] == 0;
}

// Where some of the tensors are nothing and the others have several dims: those alone, in the dtype
// of all.
std::vector<Tensor> without_nothing(std::span<const Tensor> tensors) {
  DType common = tensors[0].dtype();
  std::vector<Tensor> rest;
  for (const Tensor& t : tensors) {
    common = promote_types(common, t.dtype());
    if (!is_nothing(t)) rest.push_back(t);
  }
  if (rest.empty() || rest.size() == tensors.size() || rest[0].dim() < 2) return {};
  for (Tensor& t : rest) t = t.to(common);
  return rest;
}

}  // namespace

Tensor cat(std::span<const Tensor> tensors, int64_t dim) {
  KILN_AUTOCAST(widest, cat, tensors, dim);
  if (tensors.empty()) throw_error<ValueError>("cat: got no tensors; expected at least one");
  for (const Tensor& t : tensors) {
    if (is_nothing(t)) [[unlikely]] {
      const std::vector<Tensor> rest = without_nothing(tensors);
      if (!rest.empty()) return cat(std::span<const Tensor>(rest), dim);
    }
    if (has_complex(t)) [[unlikely]]
      return complex_cat(tensors, dim);
  }
  const Value& first = value_of("cat", tensors[0]);
  if (shape_of(first).rank() == 0) {
    throw_error<ShapeError>("cat: a 0-d tensor cannot be joined; try stack");
  }
  const int d = normalize_dim("cat", dim, shape_of(first).rank());
  DType common = dtype_of_value(first);
  Shape out = shape_of(first);
  out[d] = 0;
  for (const Tensor& t : tensors) {
    const Value& x = value_of("cat", t);
    check_same_device("cat", first, x);
    common = promote_types(common, dtype_of_value(x));
    const Shape& shape = shape_of(x);
    bool fits = shape.rank() == out.rank();
    for (int k = 0; fits && k < out.rank(); ++k) fits = k == d || shape[k] == out[k];
    if (!fits) {
      throw_error<ShapeError>("cat: shapes may differ only in dim ", d, "; got ", shape_of(first),
                              " and ", shape);
    }
    if (__builtin_add_overflow(out[d], shape[d], &out[d])) {
      throw_error<ShapeError>("cat: the sizes overflow in dim ", d);
    }
    checked_numel("cat", out);
  }
  std::vector<Value> values;
  std::vector<ErasedTensor> inner;
  for (const Tensor& t : tensors) {
    values.push_back(cast(value_of("cat", t), common));
    if (kind_of(common) != Kind::floating) inner.push_back(values.back().inner);
  }
  const std::span<const ErasedTensor> parts(inner);
  return wrap(by_kind(
      "cat", kind_of(common), [&] { return AD::float_cat(std::span<const Value>(values), d); },
      [&] { return Dispatch::int_cat(parts, d); }, [&] { return Dispatch::bool_cat(parts, d); },
      common));
}

Tensor stack(std::span<const Tensor> tensors, int64_t dim) {
  KILN_AUTOCAST(widest, stack, tensors, dim);
  if (tensors.empty()) throw_error<ValueError>("stack: got no tensors; expected at least one");
  const Shape& first = impl_of("stack", tensors[0]).shape();
  const int d = normalize_dim("stack", dim, first.rank() + 1);
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) {
    if (!(impl_of("stack", t).shape() == first)) {
      throw_error<ShapeError>("stack: shapes must be equal; got ", first, " and ", t.shape());
    }
    parts.push_back(t.unsqueeze(d));
  }
  return cat(std::span<const Tensor>(parts), d);
}

// ---- What cat and stack make

namespace {

template <class F>
std::vector<Tensor> each(const char* op, const std::vector<Tensor>& tensors, F f) {
  if (tensors.empty()) throw_error<ValueError>(op, ": got no tensors; expected at least one");
  std::vector<Tensor> out;
  for (const Tensor& x : tensors) out.push_back(f(x));
  return out;
}

// The dim that hsplit, vsplit or dsplit cut: they need at least `rank` dims.
void check_rank(const char* op, const Tensor& x, int rank) {
  if (x.dim() >= rank) return;
  throw_error<ShapeError>(op, ": expected at least ", rank, " dims; got ", x.shape());
}

std::vector<Tensor> equal_parts(const char* op, const Tensor& x, int64_t sections, int dim) {
  if (sections < 1 || x.shape()[dim] % sections != 0) {
    throw_error<ShapeError>(op, ": the sections must divide the dim; got ", sections,
                            " sections of dim ", dim, " of ", x.shape());
  }
  return tensor_split(x, sections, dim);
}

}  // namespace

Tensor hstack(const std::vector<Tensor>& tensors) {
  const std::vector<Tensor> rows = each("hstack", tensors, &atleast_1d);
  return cat(rows, rows[0].dim() == 1 ? 0 : 1);
}
Tensor vstack(const std::vector<Tensor>& tensors) {
  return cat(each("vstack", tensors, &atleast_2d), 0);
}
Tensor dstack(const std::vector<Tensor>& tensors) {
  return cat(each("dstack", tensors, &atleast_3d), 2);
}
Tensor column_stack(const std::vector<Tensor>& tensors) {
  return cat(each("column_stack", tensors,
                  [](const Tensor& x) {
                    return x.dim() <= 1 ? x.reshape({x.numel(), 1}) : x;
                  }),
             1);
}

Tensor block_diag(const std::vector<Tensor>& tensors) {
  DType dtype = tensors.empty() ? default_dtype() : tensors[0].dtype();
  int64_t rows = 0;
  int64_t columns = 0;
  const std::vector<Tensor> blocks =
      tensors.empty() ? tensors : each("block_diag", tensors, [&](const Tensor& x) {
        if (x.dim() > 2) {
          throw_error<ShapeError>("block_diag: expected at most 2 dims; got ", x.shape());
        }
        const Tensor block = atleast_2d(x);
        dtype = promote_types(dtype, x.dtype());
        rows += block.shape()[0];
        columns += block.shape()[1];
        return block;
      });
  if (tensors.empty()) return zeros({1, 0});
  Tensor out = zeros({rows, columns}, {dtype, tensors[0].device()});
  bool recorded = false;
  for (const Tensor& block : blocks) recorded |= is_grad_enabled() && block.requires_grad();
  int64_t row = 0;
  int64_t column = 0;
  for (const Tensor& block : blocks) {
    const int64_t r = block.shape()[0];
    const int64_t c = block.shape()[1];
    if (!recorded) {
      out.narrow(0, row, r).narrow(1, column, c).copy_(block);
      row += r;
      column += c;
      continue;
    }
    out = detail::with_part("block_diag", out, block, [=](const Tensor& y) {
      return y.narrow(0, row, r).narrow(1, column, c);
    });
    row += r;
    column += c;
  }
  return out;
}

std::vector<Tensor> split(const Tensor& x, const Shape& sizes, int64_t dim) {
  if (x.dim() == 0) throw_error<ShapeError>("split: a 0-d tensor cannot be split");
  const int d = normalize_dim("split", dim, x.dim());
  int64_t total = 0;
  bool fits = true;
  for (const int64_t size : sizes) {
    fits = fits && size >= 0 && !__builtin_add_overflow(total, size, &total);
  }
  if (!fits || total != x.shape()[d]) {
    throw_error<ShapeError>("split: the sizes must add up to the dim's; got ", sizes, " for dim ",
                            dim, " of ", x.shape());
  }
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    parts.push_back(detail::one_of_many(x, x.narrow(d, start, size)));
    start += size;
  }
  return parts;
}

std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int64_t dim) {
  if (x.dim() == 0) throw_error<ShapeError>("tensor_split: a 0-d tensor cannot be split");
  const int d = normalize_dim("tensor_split", dim, x.dim());
  if (sections < 1) {
    throw_error<ValueError>("tensor_split: expected at least 1 section; got ", sections);
  }
  // A dim has at most as many parts as elements, and empty ones: a list of many is a mistake.
  constexpr int64_t kMostEmpty = int64_t{1} << 20;
  if (sections - kMostEmpty > x.shape()[d]) {
    throw_error<ValueError>("tensor_split: too many sections; got ", sections,
                            " for a dim of size ", x.shape()[d]);
  }
  const int64_t size = x.shape()[d] / sections;
  const int64_t larger = x.shape()[d] % sections;
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (int64_t i = 0; i < sections; ++i) {
    const int64_t length = size + (i < larger ? 1 : 0);
    parts.push_back(x.narrow(d, start, length));
    start += length;
  }
  return parts;
}

std::vector<Tensor> tensor_split(const Tensor& x, const Shape& indices, int64_t dim) {
  if (x.dim() == 0) throw_error<ShapeError>("tensor_split: a 0-d tensor cannot be split");
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const int64_t end : indices) {
    parts.push_back(x.slice(dim, start, end));
    start = end;
  }
  parts.push_back(x.slice(dim, start));
  return parts;
}

std::vector<Tensor> hsplit(const Tensor& x, int64_t sections) {
  check_rank("hsplit", x, 1);
  return equal_parts("hsplit", x, sections, x.dim() == 1 ? 0 : 1);
}
std::vector<Tensor> hsplit(const Tensor& x, const Shape& indices) {
  check_rank("hsplit", x, 1);
  return tensor_split(x, indices, x.dim() == 1 ? 0 : 1);
}
std::vector<Tensor> vsplit(const Tensor& x, int64_t sections) {
  check_rank("vsplit", x, 2);
  return equal_parts("vsplit", x, sections, 0);
}
std::vector<Tensor> vsplit(const Tensor& x, const Shape& indices) {
  check_rank("vsplit", x, 2);
  return tensor_split(x, indices, 0);
}
std::vector<Tensor> dsplit(const Tensor& x, int64_t sections) {
  check_rank("dsplit", x, 3);
  return equal_parts("dsplit", x, sections, 2);
}
std::vector<Tensor> dsplit(const Tensor& x, const Shape& indices) {
  check_rank("dsplit", x, 3);
  return tensor_split(x, indices, 2);
}

}  // namespace kiln
