// The dropouts of channels, those that keep mean and variance, and noise. In eval mode each hands
// its input on.
#pragma once

#include <string>

#include "kiln/nn/dropout.h"

namespace kiln::nn {

// What they have in common. Throws ValueError unless 0 <= p <= 1.
class DropoutLayer : public Layer<DropoutConfig> {
 public:
  std::string extra_repr() const override;

 protected:
  DropoutLayer(const char* name, const DropoutConfig& config);
};

// Zeroes each channel of each instance with probability p and scales the others by 1 / (1 - p):
// x [N, C, L] or [C, L].
class Dropout1d : public DropoutLayer {
 public:
  explicit Dropout1d(DropoutConfig config = {}) : DropoutLayer("Dropout1d", config) {}
  KILN_MODULE_DECLARED(Dropout1d)
  Tensor forward(const Tensor& x) const;
};

// x [N, C, H, W].
class Dropout2d : public DropoutLayer {
 public:
  explicit Dropout2d(DropoutConfig config = {}) : DropoutLayer("Dropout2d", config) {}
  KILN_MODULE_DECLARED(Dropout2d)
  Tensor forward(const Tensor& x) const;
};

// x [N, C, D, H, W] or [C, D, H, W].
class Dropout3d : public DropoutLayer {
 public:
  explicit Dropout3d(DropoutConfig config = {}) : DropoutLayer("Dropout3d", config) {}
  KILN_MODULE_DECLARED(Dropout3d)
  Tensor forward(const Tensor& x) const;
};

// Sets elements to selu's negative limit; see functional::alpha_dropout. `inplace` is ignored, as
// in PyTorch.
class AlphaDropout : public DropoutLayer {
 public:
  explicit AlphaDropout(DropoutConfig config = {}) : DropoutLayer("AlphaDropout", config) {}
  KILN_MODULE_DECLARED(AlphaDropout)
  Tensor forward(const Tensor& x) const;
};

// The same for whole channels.
class FeatureAlphaDropout : public DropoutLayer {
 public:
  explicit FeatureAlphaDropout(DropoutConfig config = {})
      : DropoutLayer("FeatureAlphaDropout", config) {}
  KILN_MODULE_DECLARED(FeatureAlphaDropout)
  Tensor forward(const Tensor& x) const;
};

struct GaussianNoiseConfig {
  Required<Real> std = {};
  KILN_CONFIG(GaussianNoiseConfig, doc(std, "standard deviation of the noise"))
};

// In training mode adds normal noise of mean 0. Throws ValueError for a negative or non-finite std.
class GaussianNoise : public Layer<GaussianNoiseConfig> {
 public:
  explicit GaussianNoise(GaussianNoiseConfig config);
  KILN_MODULE_DECLARED(GaussianNoise)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

}  // namespace kiln::nn
