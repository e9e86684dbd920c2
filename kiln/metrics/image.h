// Metrics of images [N, C, H, W] against others of the same shape.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/metrics/metric.h"

namespace kiln::metrics {

// The peak signal-to-noise ratio 10 log10(data_range^2 / MSE) over all pixels, in decibels; tensors
// of any one shape.
class PeakSignalNoiseRatio final : public Cloned<PeakSignalNoiseRatio> {
 public:
  // data_range: the largest possible difference, 1 or 255. Throws ValueError unless positive.
  explicit PeakSignalNoiseRatio(double data_range);
  void update(const Tensor& preds, const Tensor& target);
  Tensor compute() const override;
  std::string description() const override;

 private:
  void visit_state(StateVisitor& visitor) override;
  double data_range_;
  double sum_ = 0;
  int64_t count_ = 0;
};

struct SsimOptions {
  double data_range = 1;
  double sigma = 1.5;  // of a Gaussian window, cut off at 3.5 sigma
  double k1 = 0.01;
  double k2 = 0.03;
};

// Structural similarity (Wang et al., 2004): the mean over images of the mean over their channels
// and pixels. At the borders the window sees the image mirrored, as in TorchMetrics.
class StructuralSimilarityIndexMeasure final : public Cloned<StructuralSimilarityIndexMeasure> {
 public:
  // Throws ValueError.
  explicit StructuralSimilarityIndexMeasure(const SsimOptions& options = {});
  // Floats [N, C, H, W]. Throws ShapeError, also for images below half the window; DTypeError.
  void update(const Tensor& preds, const Tensor& target);
  Tensor compute() const override;
  std::string description() const override;

 private:
  void visit_state(StateVisitor& visitor) override;
  SsimOptions options_;
  double sum_ = 0;
  int64_t count_ = 0;
};

// Its product over scales, each half the one before (Wang, Simoncelli & Bovik, 2003). Negative
// similarities count as 0. Images must have more than 10 (scales - 1)^2 rows and columns
// (ShapeError).
class MultiScaleStructuralSimilarityIndexMeasure final
    : public Cloned<MultiScaleStructuralSimilarityIndexMeasure> {
 public:
  // betas: the exponent of each scale. Throws ValueError.
  explicit MultiScaleStructuralSimilarityIndexMeasure(const SsimOptions& options = {},
                                                      std::vector<double> betas = {
                                                          0.0448, 0.2856, 0.3001, 0.2363, 0.1333});
  void update(const Tensor& preds, const Tensor& target);
  Tensor compute() const override;
  std::string description() const override;

 private:
  void visit_state(StateVisitor& visitor) override;
  SsimOptions options_;
  std::vector<double> betas_;
  double sum_ = 0;
  int64_t count_ = 0;
};

// Fréchet's distance between two sets of features as if both were normal (Heusel et al., 2017):
// |m1 - m2|^2 + tr(S1 + S2 - 2 (S1 S2)^(1/2)). With the features of an Inception network, FID.
class FrechetInceptionDistance final : public Cloned<FrechetInceptionDistance> {
 public:
  using Features = std::function<Tensor(const Tensor& images)>;
  // features: gives [N, D] of images; without, update() takes features.
  explicit FrechetInceptionDistance(Features features = {}) : features_(std::move(features)) {}

  // real: to which set they belong. Throws ShapeError, DTypeError.
  void update(const Tensor& images, bool real);
  // NaN below two of either.
  Tensor compute() const override;
  void reset() override;
  std::string description() const override { return "FrechetInceptionDistance()"; }

 private:
  struct Sums {
    int64_t count = 0;
    std::vector<double> sum;      // [D]
    std::vector<double> product;  // [D, D]: sum x x^T
  };
  void visit_state(StateVisitor& visitor) override;
  void check_state() const override;
  static std::pair<Tensor, Tensor> moments(const Sums& sums);

  Features features_;
  Sums real_, made_;
};

// Learned perceptual similarity (Zhang et al., 2018), a mean over pairs of images: the sum over
// layers of the mean over places of sum_c w_c (a_c - b_c)^2, where a and b are a network's
// features, each made a unit vector over its channels.
class LearnedPerceptualImagePatchSimilarity final
    : public Cloned<LearnedPerceptualImagePatchSimilarity> {
 public:
  // What a network computes of images: features [N, C, H, W] of one layer or several.
  using Layers = std::function<std::vector<Tensor>(const Tensor& images)>;
  // weights: [C] (or [1, C, 1, 1]) for each layer; ones where there are none. Throws ValueError
  // without a network.
  explicit LearnedPerceptualImagePatchSimilarity(Layers layers, std::vector<Tensor> weights = {});
  void update(const Tensor& first, const Tensor& second);
  Tensor compute() const override;
  std::string description() const override { return "LearnedPerceptualImagePatchSimilarity()"; }

 private:
  void visit_state(StateVisitor& visitor) override;
  Layers layers_;
  std::vector<Tensor> weights_;
  double sum_ = 0;
  int64_t count_ = 0;
};

// Dice's coefficient 2 |A and B| / (|A| + |B|) of each class of a segmentation, by image:
// see ClassMetric's F1 for one of all pixels together.
class DiceScore final : public Cloned<DiceScore> {
 public:
  // Classes [N, ..] of num_classes, or one_hot [N, C, ..]. average over classes: micro, macro,
  // weighted, none; then over images. Classes that neither has are left out (macro). Throws
  // ValueError.
  explicit DiceScore(int64_t num_classes, bool include_background = true,
                     std::string average = "macro", bool one_hot = false);
  void update(const Tensor& preds, const Tensor& target);
  Tensor compute() const override;
  std::string description() const override;

 private:
  void visit_state(StateVisitor& visitor) override;
  int64_t num_classes_;
  bool include_background_;
  std::string average_;
  bool one_hot_;
  std::vector<double> sum_;     // by class for none, else one
  std::vector<int64_t> count_;  // images with a value
};

}  // namespace kiln::metrics
