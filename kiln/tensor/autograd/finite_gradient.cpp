#include "kiln/tensor/autograd/finite_gradient.h"

#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

namespace {

constexpr const char* kOp = "gradient";

Dims checked_dims(const Tensor& x, const Dims& dims, int64_t edge_order) {
  if (edge_order != 1 && edge_order != 2) {
    throw_error<ValueError>("gradient: expected edge_order 1 or 2; got ", edge_order);
  }
  Dims out;
  for (const int64_t d : dims) out.push_back(normalize_dim(kOp, d, x.dim()));
  if (dims.empty()) {
    for (int d = 0; d < x.dim(); ++d) out.push_back(d);
  }
  if (x.dim() == 0) throw_error<ShapeError>("gradient: expected at least 1 dim; got a 0-d tensor");
  for (const int64_t d : out) {
    if (x.shape()[static_cast<int>(d)] > edge_order) continue;
    throw_error<ShapeError>("gradient: expected at least ", edge_order + 1,
                            " points along each dim; got ", x.shape());
  }
  return out;
}

Tensor in_floats(const Tensor& x) {
  return x.is_floating_point() || is_complex(x.dtype()) ? x : x.to(default_dtype());
}

// Points i, i + 1, .. of the dim, as many as `count`.
Tensor points(const Tensor& x, int64_t dim, int64_t first, int64_t count) {
  return x.narrow(dim, first < 0 ? x.size(dim) + first : first, count);
}
Tensor one(const Tensor& x, int64_t dim, int64_t i) { return points(x, dim, i, 1); }

Tensor even(const Tensor& x, int64_t d, double h, int64_t edge_order) {
  const int64_t n = x.size(d);
  Tensor first, last;
  if (edge_order == 1) {
    first = one(x, d, 1).sub(one(x, d, 0)).div(h);
    last = one(x, d, -1).sub(one(x, d, -2)).div(h);
  } else {
    first = one(x, d, 0).mul(-1.5).add(one(x, d, 1).mul(2.0)).sub(one(x, d, 2).mul(0.5)).div(h);
    last = one(x, d, -3).mul(0.5).sub(one(x, d, -2).mul(2.0)).add(one(x, d, -1).mul(1.5)).div(h);
  }
  const Tensor inside = points(x, d, 2, n - 2).sub(points(x, d, 0, n - 2)).div(2 * h);
  return cat({first, inside, last}, d);
}

// Weights of three neighbours whose distances are `left` and `right`, for the derivative at the
// place of the first, the middle one or the last.
enum class At : uint8_t { first, middle, last };
Tensor weighted(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& left,
                const Tensor& right, At at) {
  const Tensor both = left.add(right);
  const Tensor to_a = left.mul(both).reciprocal();
  const Tensor to_b = left.mul(right).reciprocal();
  const Tensor to_c = right.mul(both).reciprocal();
  switch (at) {
    case At::first:
      return b.mul(both.mul(to_b)).sub(a.mul(left.add(both).mul(to_a))).sub(c.mul(left.mul(to_c)));
    case At::middle:
      return b.mul(right.sub(left).mul(to_b))
          .sub(a.mul(right.mul(to_a)))
          .add(c.mul(left.mul(to_c)));
    default:
      return a.mul(right.mul(to_a))
          .sub(b.mul(both.mul(to_b)))
          .add(c.mul(right.add(both).mul(to_c)));
  }
}

Tensor uneven(const Tensor& x, int64_t d, const Tensor& positions, int64_t edge_order) {
  const int64_t n = x.size(d);
  if (positions.dim() != 1 || positions.numel() != n) {
    throw_error<ShapeError>("gradient: expected a row with a coordinate for each of the ", n,
                            " points; got ", positions.shape());
  }
  Shape row = Shape::filled(x.dim(), 1);
  row[static_cast<int>(d)] = n - 1;
  const Tensor at = in_floats(positions);
  const Tensor h = at.narrow(0, 1, n - 1).sub(at.narrow(0, 0, n - 1)).reshape(row);
  const Tensor inside =
      weighted(points(x, d, 0, n - 2), points(x, d, 1, n - 2), points(x, d, 2, n - 2),
               points(h, d, 0, n - 2), points(h, d, 1, n - 2), At::middle);
  Tensor first, last;
  if (edge_order == 1) {
    first = one(x, d, 1).sub(one(x, d, 0)).div(one(h, d, 0));
    last = one(x, d, -1).sub(one(x, d, -2)).div(one(h, d, -1));
  } else {
    first =
        weighted(one(x, d, 0), one(x, d, 1), one(x, d, 2), one(h, d, 0), one(h, d, 1), At::first);
    last = weighted(one(x, d, -3), one(x, d, -2), one(x, d, -1), one(h, d, -2), one(h, d, -1),
                    At::last);
  }
  return cat({first, inside, last}, d);
}

template <class T>
void check_count(const char* what, const std::vector<T>& given, const Dims& dims) {
  if (given.size() == dims.size()) return;
  throw_error<ValueError>("gradient: expected ", what, " for each of the ", dims.size(),
                          " dims; got ", given.size());
}

}  // namespace

std::vector<Tensor> gradient(const Tensor& x, double spacing, const Dims& dims,
                             int64_t edge_order) {
  const Dims along = checked_dims(x, dims, edge_order);
  return gradient(x, std::vector<double>(along.size(), spacing), dims, edge_order);
}

std::vector<Tensor> gradient(const Tensor& x, const std::vector<double>& spacing, const Dims& dims,
                             int64_t edge_order) {
  const Dims along = checked_dims(x, dims, edge_order);
  check_count("a spacing", spacing, along);
  const Tensor y = in_floats(x);
  std::vector<Tensor> out;
  for (size_t i = 0; i < spacing.size(); ++i) {
    out.push_back(even(y, along[static_cast<int>(i)], spacing[i], edge_order));
  }
  return out;
}

std::vector<Tensor> gradient(const Tensor& x, const std::vector<Tensor>& coordinates,
                             const Dims& dims, int64_t edge_order) {
  const Dims along = checked_dims(x, dims, edge_order);
  check_count("a row of coordinates", coordinates, along);
  const Tensor y = in_floats(x);
  std::vector<Tensor> out;
  for (size_t i = 0; i < coordinates.size(); ++i) {
    out.push_back(uneven(y, along[static_cast<int>(i)], coordinates[i], edge_order));
  }
  return out;
}

}  // namespace kiln
