#include "kiln/tensor/shape/joining.h"

#include "kiln/tensor/autograd/formula.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/shape/shapes.h"

namespace kiln {

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
