// Metrics of what a network computes of images.
#include <cmath>
#include <limits>

#include "kiln/core/error.h"
#include "kiln/metrics/image.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/linalg/products.h"
#include "kiln/tensor/ops.h"

namespace kiln::metrics {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void add_to(std::vector<double>& sums, const Tensor& x) {
  const std::vector<double> values = x.to_vector<double>();
  if (sums.empty()) sums.assign(values.size(), 0);
  for (size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
}

}  // namespace

void FrechetInceptionDistance::visit_state(StateVisitor& visitor) {
  visitor("real_count", real_.count, Join::sum);
  visitor("real_sum", real_.sum, Join::sum);
  visitor("real_product", real_.product, Join::sum);
  visitor("made_count", made_.count, Join::sum);
  visitor("made_sum", made_.sum, Join::sum);
  visitor("made_product", made_.product, Join::sum);
}

void FrechetInceptionDistance::reset() { real_ = made_ = Sums(); }

void FrechetInceptionDistance::check_state() const {
  for (const Sums* s : {&real_, &made_}) {
    if (s->product.size() != s->sum.size() * s->sum.size() || (s->count > 0) != !s->sum.empty()) {
      throw_error<ValueError>("load_state_dict: FrechetInceptionDistance's values do not fit");
    }
  }
}

void FrechetInceptionDistance::update(const Tensor& images, bool real) {
  const Tensor x = features_ ? features_(images) : images;
  if (!x.defined() || x.dim() != 2) {
    throw_error<ShapeError>("FrechetInceptionDistance: features are [N, D]; got ",
                            x.defined() ? concat(x.shape()) : "nothing");
  }
  if (!x.is_floating_point() || x.is_complex()) {
    throw_error<DTypeError>("FrechetInceptionDistance: features must be floating point; got ",
                            x.dtype());
  }
  for (const Sums* s : {&real_, &made_}) {
    if (!s->sum.empty() && s->sum.size() != static_cast<size_t>(x.size(1))) {
      throw_error<ShapeError>("FrechetInceptionDistance: got ", x.size(1), " features; expected ",
                              s->sum.size(), " as before");
    }
  }
  if (x.size(0) == 0 || x.size(1) == 0) return;
  const Tensor values = x.detach().to(f64);
  Sums& sums = real ? real_ : made_;
  add_to(sums.sum, values.sum(0));
  add_to(sums.product, values.t().matmul(values));
  sums.count += x.size(0);
}

std::pair<Tensor, Tensor> FrechetInceptionDistance::moments(const Sums& sums) {
  const auto n = static_cast<double>(sums.count);
  const auto d = static_cast<int64_t>(sums.sum.size());
  const Tensor mean = from_vector(sums.sum, {d}, {.dtype = f64}) / n;
  const Tensor product = from_vector(sums.product, {d, d}, {.dtype = f64});
  return {mean, (product - n * mean.unsqueeze(1) * mean.unsqueeze(0)) / (n - 1)};
}

Tensor FrechetInceptionDistance::compute() const {
  if (real_.count < 2 || made_.count < 2) return value_tensor(kNan);
  const auto [m1, s1] = moments(real_);
  const auto [m2, s2] = moments(made_);
  // tr (S1 S2)^(1/2) is the sum of the roots of the eigenvalues of the symmetric R S2 R with R R =
  // S1.
  const auto [values, vectors] = linalg::eigh(s1);
  const Tensor root = (vectors * values.clamp(0).sqrt().unsqueeze(0)).matmul(vectors.t());
  const Tensor mixed = root.matmul(s2).matmul(root);
  const Tensor roots = linalg::eigvalsh((mixed + mixed.t()) / 2).clamp(0).sqrt();
  const Tensor gap = m1 - m2;
  const Tensor traces = trace(s1) + trace(s2);
  return (gap * gap).sum() + traces - 2 * roots.sum();
}

LearnedPerceptualImagePatchSimilarity::LearnedPerceptualImagePatchSimilarity(
    Layers layers, std::vector<Tensor> weights)
    : layers_(std::move(layers)), weights_(std::move(weights)) {
  if (!layers_) {
    throw_error<ValueError>("LearnedPerceptualImagePatchSimilarity: expected a network; got none");
  }
}

void LearnedPerceptualImagePatchSimilarity::visit_state(StateVisitor& visitor) {
  visitor("sum", sum_, Join::sum);
  visitor("count", count_, Join::sum);
}

void LearnedPerceptualImagePatchSimilarity::update(const Tensor& first, const Tensor& second) {
  const char* const op = "LearnedPerceptualImagePatchSimilarity";
  check_same_shape(op, first, second);
  const std::vector<Tensor> a = layers_(first), b = layers_(second);
  if (a.size() != b.size() || a.empty() || (!weights_.empty() && weights_.size() != a.size())) {
    throw_error<ValueError>(op, ": the network gave ", a.size(), " and ", b.size(),
                            " layers; expected one or more, and as many as weights (",
                            weights_.size(), ")");
  }
  const auto unit = [](const Tensor& x) {
    const Tensor wide = x.detach().to(f64);
    return wide / ((wide * wide).sum(1, true).sqrt() + 1e-10);
  };
  double sum = 0;
  int64_t count = 0;
  for (size_t layer = 0; layer < a.size(); ++layer) {
    if (!a[layer].defined() || !b[layer].defined() || a[layer].dim() != 4 ||
        a[layer].shape() != b[layer].shape() || a[layer].size(0) != a[0].size(0)) {
      throw_error<ShapeError>(op, ": layer ", layer, " gave no features [N, C, H, W]");
    }
    const Tensor gap = unit(a[layer]) - unit(b[layer]);
    Tensor squares = gap * gap;
    if (!weights_.empty()) {
      const Tensor& w = weights_[layer];
      if (w.numel() != a[layer].size(1)) {
        throw_error<ShapeError>(op, ": layer ", layer, " has ", a[layer].size(1), " channels and ",
                                w.numel(), " weights");
      }
      squares = squares * w.detach().to(f64).reshape({1, -1, 1, 1});
    }
    sum += squares.sum(1).mean({1, 2}).sum().item();
    count = a[layer].size(0);
  }
  sum_ += sum;
  count_ += count;
}

Tensor LearnedPerceptualImagePatchSimilarity::compute() const {
  return value_tensor(ratio(sum_, static_cast<double>(count_), kNan));
}

}  // namespace kiln::metrics
