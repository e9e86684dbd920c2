// Matrix products.
#include "kiln/backend/reference/activation.h"
#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::make;
using reference::Ops;
using reference::read;
using reference::Tensor;

namespace {

double multiply_add(double sum, double a, double b) { return sum + a * b; }
int64_t multiply_add(int64_t sum, int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(sum) +
                              static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

Shape with_matrix(const Shape& batch, int64_t rows, int64_t columns) {
  Shape shape = batch;
  shape.push_back(rows);
  shape.push_back(columns);
  return shape;
}

Shape batch_of(const Shape& shape) {
  Shape batch = shape;
  batch.erase(batch.rank() - 1);
  batch.erase(batch.rank() - 1);
  return batch;
}

template <class V>
HostHandle matmul(const HostHandle& a, const HostHandle& b) {
  const int64_t n = a->shape()[a->shape().rank() - 2];
  const int64_t depth = a->shape().back();
  const int64_t m = b->shape().back();
  const Shape batch = broadcast_shapes("matmul", batch_of(a->shape()), batch_of(b->shape()));
  const std::vector<V> lhs = read<V>(a, with_matrix(batch, n, depth));
  const std::vector<V> rhs = read<V>(b, with_matrix(batch, depth, m));
  std::vector<V> out;
  for (int64_t s = 0; s < batch.numel(); ++s) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < m; ++j) {
        V sum = 0;
        for (int64_t k = 0; k < depth; ++k) {
          sum = multiply_add(sum, lhs[static_cast<size_t>((s * n + i) * depth + k)],
                             rhs[static_cast<size_t>((s * depth + k) * m + j)]);
        }
        out.push_back(sum);
      }
    }
  }
  return make(with_matrix(batch, n, m), a->dtype(), a->device(), out);
}

// x weight^T + bias, row by row.
std::vector<double> linear(const HostHandle& x, const HostHandle& weight, const HostHandle* bias) {
  const auto in = static_cast<size_t>(weight->shape()[1]);
  const auto out_features = static_cast<size_t>(weight->shape()[0]);
  const std::vector<double> inputs = read<double>(x);
  const std::vector<double> weights = read<double>(weight);
  std::vector<double> biases(out_features, 0.0);
  if (bias != nullptr) biases = read<double>(*bias);
  size_t rows = 1;
  for (int d = 0; d + 1 < x->shape().rank(); ++d) rows *= static_cast<size_t>(x->shape()[d]);
  std::vector<double> out;
  for (size_t r = 0; r < rows; ++r) {
    for (size_t o = 0; o < out_features; ++o) {
      double sum = biases[o];
      for (size_t i = 0; i < in; ++i) sum += inputs[r * in + i] * weights[o * in + i];
      out.push_back(sum);
    }
  }
  return out;
}

Shape linear_shape(const HostHandle& x, const HostHandle& weight) {
  Shape shape = x->shape();
  shape.back() = weight->shape()[0];
  return shape;
}

}  // namespace

HostHandle Ops::float_matmul(Tensor a, Tensor b) { return matmul<double>(a, b); }

namespace {

// The entries of a matrix in compressed rows: calls f(e, row, column) for each.
template <class Fn>
void for_each_entry(const Tensor& crow, const Tensor& col, int64_t columns, Fn&& f) {
  const std::vector<int64_t> bounds = read<int64_t>(crow);
  const std::vector<int64_t> places = read<int64_t>(col);
  const int64_t count = col->numel();
  bool rises = bounds.front() == 0 && bounds.back() == count;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) rises = rises && bounds[i] <= bounds[i + 1];
  if (!rises) throw_error<IndexError>("csr_matmul: rows do not rise from 0 to ", count);
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    for (int64_t e = bounds[i]; e < bounds[i + 1]; ++e) {
      const int64_t at = places[static_cast<size_t>(e)];
      if (at < 0 || at >= columns) throw_error<IndexError>("csr_matmul: no column ", at);
      f(static_cast<size_t>(e), static_cast<int64_t>(i), at);
    }
  }
}

}  // namespace

HostHandle Ops::float_csr_matmul(Tensor crow, Tensor col, Tensor values, Tensor dense,
                                 int64_t columns, bool transposed) {
  const std::vector<double> factors = read<double>(values);
  const std::vector<double> from = read<double>(dense);
  const int64_t n = dense->shape()[1];
  const Shape shape{transposed ? columns : crow->numel() - 1, n};
  std::vector<double> out(static_cast<size_t>(shape.numel()));
  for_each_entry(crow, col, columns, [&](size_t e, int64_t row, int64_t column) {
    const int64_t to = transposed ? column : row;
    const int64_t source = transposed ? row : column;
    for (int64_t c = 0; c < n; ++c) {
      out[static_cast<size_t>(to * n + c)] +=
          factors[e] * from[static_cast<size_t>(source * n + c)];
    }
  });
  return make(shape, values->dtype(), values->device(), out);
}
HostHandle Ops::float_csr_sampled_matmul(Tensor crow, Tensor col, Tensor x, Tensor y) {
  const std::vector<double> xs = read<double>(x);
  const std::vector<double> ys = read<double>(y);
  const int64_t n = x->shape()[1];
  std::vector<double> out(static_cast<size_t>(col->numel()));
  for_each_entry(crow, col, y->shape()[0], [&](size_t e, int64_t row, int64_t column) {
    for (int64_t c = 0; c < n; ++c) {
      out[e] += xs[static_cast<size_t>(row * n + c)] * ys[static_cast<size_t>(column * n + c)];
    }
  });
  return make(col->shape(), x->dtype(), x->device(), out);
}
HostHandle Ops::int_matmul(Tensor a, Tensor b) { return matmul<int64_t>(a, b); }

HostHandle Ops::float_linear(Tensor x, Tensor weight, const HostHandle* bias) {
  return make(linear_shape(x, weight), x->dtype(), x->device(), linear(x, weight, bias));
}

HostHandle Ops::float_linear_activation(Tensor x, Tensor weight, const HostHandle* bias,
                                        const HostHandle* residual, Activation activation) {
  std::vector<double> out = linear(x, weight, bias);
  for (double& y : out) y = reference::activated(y, activation);
  if (residual != nullptr) {
    const std::vector<double> added = read<double>(*residual);
    for (size_t i = 0; i < out.size(); ++i) out[i] += added[i];
  }
  return make(linear_shape(x, weight), x->dtype(), x->device(), out);
}

}  // namespace kiln
