// Batch and layer normalization.
#include <cmath>

#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::make;
using reference::Ops;
using reference::read;
using reference::Rows;
using reference::Tensor;

namespace {

// Batch norm normalizes the rows over all dims but 1; layer norm those over the last n. The two
// differ in where a row's weight comes from: one for the whole row, or one for each place in it.
Dims all_but_channels(int rank) {
  Dims dims;
  for (int d = 0; d < rank; ++d) {
    if (d != 1) dims.push_back(d);
  }
  return dims;
}
Dims last_dims(int rank, int n) {
  Dims dims;
  for (int d = rank - n; d < rank; ++d) dims.push_back(d);
  return dims;
}

double mean_of(std::span<const double> row) {
  double sum = 0.0;
  for (double x : row) sum += x;
  return sum / static_cast<double>(row.size());
}
double biased_variance(std::span<const double> row, double mean) {
  double squares = 0.0;
  for (double x : row) squares += (x - mean) * (x - mean);
  return squares / static_cast<double>(row.size());
}

// The values of an optional weight or bias, `otherwise` where there is none.
std::vector<double> values_or(const HostHandle* x, int64_t count, double otherwise) {
  if (x != nullptr) return read<double>(*x);
  return std::vector<double>(static_cast<size_t>(count), otherwise);
}

// Rows back in the layout of the tensor that they were read from.
HostHandle restored(const Rows<double>& rows, const HostHandle& like) {
  HostHandle out = host::empty(like->shape(), like->dtype(), like->device());
  reference::write(host::permute(out, rows.order), rows.values);
  return out;
}

// Given g, x' = (x - mean) rstd and each place's weight: writes x's gradient over `g`.
//   h = g weight;  rstd (h - mean(h) - x' mean(h x'))
template <class WeightAt>
void input_gradient(std::span<double> g, std::span<const double> normalized, double rstd,
                    WeightAt&& weight_at) {
  const auto n = static_cast<double>(g.size());
  double mean_h = 0.0;
  double mean_along = 0.0;
  for (size_t i = 0; i < g.size(); ++i) {
    g[i] *= weight_at(i);
    mean_h += g[i] / n;
    mean_along += g[i] * normalized[i] / n;
  }
  for (size_t i = 0; i < g.size(); ++i) g[i] = rstd * (g[i] - mean_h - normalized[i] * mean_along);
}

// Where the elements of each image's groups of channels stand in row-major order.
struct GroupPlaces {
  GroupPlaces(const Shape& shape, int64_t of_groups)
      : groups(of_groups), channels(shape[1] / of_groups), rows(shape[0] * of_groups) {
    for (int d = 2; d < shape.rank(); ++d) plane *= shape[d];
  }
  std::span<double> row(std::vector<double>& values, int64_t r) const {
    const int64_t length = channels * plane;
    return std::span(values).subspan(static_cast<size_t>(r * length), static_cast<size_t>(length));
  }
  size_t channel(int64_t r, size_t i) const {
    return static_cast<size_t>(r % groups * channels + static_cast<int64_t>(i) / plane);
  }
  int64_t groups, channels, rows, plane = 1;
};

}  // namespace

using Three = std::tuple<HostHandle, HostHandle, HostHandle>;

Three Ops::float_batch_norm(Tensor x, const HostHandle* weight, const HostHandle* bias,
                            double eps) {
  Rows<double> rows(x, all_but_channels(x->shape().rank()));
  const std::vector<double> scales = values_or(weight, rows.count, 1.0);
  const std::vector<double> shifts = values_or(bias, rows.count, 0.0);
  std::vector<double> means;
  std::vector<double> variances;
  for (int64_t c = 0; c < rows.count; ++c) {
    const std::span<double> row = rows.row(c);
    const double mean = mean_of(row);
    const double variance = biased_variance(row, mean);
    const double scale = scales[static_cast<size_t>(c)] / std::sqrt(variance + eps);
    for (double& value : row) value = (value - mean) * scale + shifts[static_cast<size_t>(c)];
    means.push_back(mean);
    variances.push_back(variance);
  }
  const DType wide = size_of(x->dtype()) == 2 ? DType::f32 : x->dtype();
  return {restored(rows, x), make({rows.count}, wide, x->device(), means),
          make({rows.count}, wide, x->device(), variances)};
}

HostHandle Ops::float_batch_norm_inference(Tensor x, Tensor mean, Tensor var,
                                           const HostHandle* weight, const HostHandle* bias,
                                           double eps) {
  Rows<double> rows(x, all_but_channels(x->shape().rank()));
  const std::vector<double> means = read<double>(mean);
  const std::vector<double> variances = read<double>(var);
  const std::vector<double> scales = values_or(weight, rows.count, 1.0);
  const std::vector<double> shifts = values_or(bias, rows.count, 0.0);
  for (size_t c = 0; c < means.size(); ++c) {
    const double scale = scales[c] / std::sqrt(variances[c] + eps);
    for (double& value : rows.row(static_cast<int64_t>(c))) {
      value = (value - means[c]) * scale + shifts[c];
    }
  }
  return restored(rows, x);
}

Three Ops::float_batch_norm_backward(Tensor g, Tensor x, const HostHandle* weight, Tensor mean,
                                     Tensor var, double eps) {
  const Dims dims = all_but_channels(x->shape().rank());
  Rows<double> grads(g, dims);
  Rows<double> normalized(x, dims);
  const std::vector<double> means = read<double>(mean);
  const std::vector<double> variances = read<double>(var);
  const std::vector<double> scales = values_or(weight, grads.count, 1.0);
  std::vector<double> weight_grads(means.size(), 0.0);
  std::vector<double> bias_grads(means.size(), 0.0);
  for (size_t c = 0; c < means.size(); ++c) {
    const std::span<double> grad = grads.row(static_cast<int64_t>(c));
    const std::span<double> row = normalized.row(static_cast<int64_t>(c));
    const double rstd = 1.0 / std::sqrt(variances[c] + eps);
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = (row[i] - means[c]) * rstd;
      weight_grads[c] += grad[i] * row[i];
      bias_grads[c] += grad[i];
    }
    input_gradient(grad, row, rstd, [&](size_t) { return scales[c]; });
  }
  const Shape channels = {grads.count};
  return {restored(grads, x), make(channels, mean->dtype(), x->device(), weight_grads),
          make(channels, mean->dtype(), x->device(), bias_grads)};
}

Three Ops::float_batch_norm_inference_backward(Tensor g, Tensor x, Tensor mean, Tensor var,
                                               const HostHandle* weight, double eps) {
  const Dims dims = all_but_channels(x->shape().rank());
  Rows<double> grads(g, dims);
  Rows<double> rows(x, dims);
  const std::vector<double> means = read<double>(mean);
  const std::vector<double> variances = read<double>(var);
  const std::vector<double> scales = values_or(weight, grads.count, 1.0);
  std::vector<double> weight_grads(means.size(), 0.0);
  std::vector<double> bias_grads(means.size(), 0.0);
  for (size_t c = 0; c < means.size(); ++c) {
    const std::span<double> grad = grads.row(static_cast<int64_t>(c));
    const std::span<double> row = rows.row(static_cast<int64_t>(c));
    const double rstd = 1.0 / std::sqrt(variances[c] + eps);
    for (size_t i = 0; i < row.size(); ++i) {
      weight_grads[c] += grad[i] * (row[i] - means[c]) * rstd;
      bias_grads[c] += grad[i];
      grad[i] *= rstd * scales[c];
    }
  }
  const Shape channels = {grads.count};
  return {restored(grads, x), make(channels, mean->dtype(), x->device(), weight_grads),
          make(channels, mean->dtype(), x->device(), bias_grads)};
}

// A group's elements are a row; number i of it belongs to channel i / plane of the group.
Three Ops::float_group_norm(Tensor x, const HostHandle* weight, const HostHandle* bias,
                            int64_t groups, double eps) {
  const GroupPlaces places(x->shape(), groups);
  std::vector<double> values = read<double>(x);
  const std::vector<double> scales = values_or(weight, x->shape()[1], 1.0);
  const std::vector<double> shifts = values_or(bias, x->shape()[1], 0.0);
  std::vector<double> means;
  std::vector<double> rstds;
  for (int64_t r = 0; r < places.rows; ++r) {
    const std::span<double> row = places.row(values, r);
    const double mean = mean_of(row);
    const double rstd = 1.0 / std::sqrt(biased_variance(row, mean) + eps);
    for (size_t i = 0; i < row.size(); ++i) {
      const size_t c = places.channel(r, i);
      row[i] = (row[i] - mean) * rstd * scales[c] + shifts[c];
    }
    means.push_back(mean);
    rstds.push_back(rstd);
  }
  const Shape kept = {x->shape()[0], groups};
  return {make(x->shape(), x->dtype(), x->device(), values),
          make(kept, x->dtype(), x->device(), means), make(kept, x->dtype(), x->device(), rstds)};
}

Three Ops::float_group_norm_backward(Tensor g, Tensor x, const HostHandle* weight, Tensor mean,
                                     Tensor rstd, int64_t groups, double) {
  const GroupPlaces places(x->shape(), groups);
  std::vector<double> grads = read<double>(g);
  std::vector<double> values = read<double>(x);
  const std::vector<double> means = read<double>(mean);
  const std::vector<double> rstds = read<double>(rstd);
  const std::vector<double> scales = values_or(weight, x->shape()[1], 1.0);
  std::vector<double> weight_grads(scales.size(), 0.0);
  std::vector<double> bias_grads(scales.size(), 0.0);
  for (int64_t r = 0; r < places.rows; ++r) {
    const std::span<double> grad = places.row(grads, r);
    const std::span<double> row = places.row(values, r);
    const auto at = static_cast<size_t>(r);
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = (row[i] - means[at]) * rstds[at];
      weight_grads[places.channel(r, i)] += grad[i] * row[i];
      bias_grads[places.channel(r, i)] += grad[i];
    }
    input_gradient(grad, row, rstds[at], [&](size_t i) { return scales[places.channel(r, i)]; });
  }
  const Shape channels = {x->shape()[1]};
  return {make(x->shape(), x->dtype(), x->device(), grads),
          make(channels, x->dtype(), x->device(), weight_grads),
          make(channels, x->dtype(), x->device(), bias_grads)};
}

Three Ops::float_layer_norm(Tensor x, const HostHandle* weight, const HostHandle* bias, int n,
                            double eps) {
  const Dims dims = last_dims(x->shape().rank(), n);
  Rows<double> rows(x, dims);
  const std::vector<double> scales = values_or(weight, rows.length, 1.0);
  const std::vector<double> shifts = values_or(bias, rows.length, 0.0);
  std::vector<double> means;
  std::vector<double> rstds;
  for (int64_t r = 0; r < rows.count; ++r) {
    const std::span<double> row = rows.row(r);
    const double mean = mean_of(row);
    const double rstd = 1.0 / std::sqrt(biased_variance(row, mean) + eps);
    for (size_t i = 0; i < row.size(); ++i) row[i] = (row[i] - mean) * rstd * scales[i] + shifts[i];
    means.push_back(mean);
    rstds.push_back(rstd);
  }
  const Shape kept = reduced_shape(x->shape(), dims, true);
  return {restored(rows, x), make(kept, x->dtype(), x->device(), means),
          make(kept, x->dtype(), x->device(), rstds)};
}

Three Ops::float_layer_norm_backward(Tensor g, Tensor x, const HostHandle* weight, Tensor mean,
                                     Tensor rstd, int n) {
  const Dims dims = last_dims(x->shape().rank(), n);
  Rows<double> grads(g, dims);
  Rows<double> normalized(x, dims);
  const std::vector<double> means = read<double>(mean);
  const std::vector<double> rstds = read<double>(rstd);
  const std::vector<double> scales = values_or(weight, grads.length, 1.0);
  std::vector<double> weight_grads(scales.size(), 0.0);
  std::vector<double> bias_grads(scales.size(), 0.0);
  for (size_t r = 0; r < means.size(); ++r) {
    const std::span<double> grad = grads.row(static_cast<int64_t>(r));
    const std::span<double> row = normalized.row(static_cast<int64_t>(r));
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = (row[i] - means[r]) * rstds[r];
      weight_grads[i] += grad[i] * row[i];
      bias_grads[i] += grad[i];
    }
    input_gradient(grad, row, rstds[r], [&](size_t i) { return scales[i]; });
  }
  Shape shape;
  for (int64_t dim : dims) shape.push_back(x->shape()[static_cast<int>(dim)]);
  return {restored(grads, x), make(shape, x->dtype(), x->device(), weight_grads),
          make(shape, x->dtype(), x->device(), bias_grads)};
}

}  // namespace kiln
