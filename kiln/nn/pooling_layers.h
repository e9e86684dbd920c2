// Pooling layers over one, two and three spatial dims; kiln/tensor/nn/pooling.h says what each
// computes. MaxPool2d and AvgPool2d have headers of their own.
//
// x [N, C, L], [N, C, H, W] or [N, C, D, H, W], or the same without N. Sizes are one number for all
// spatial dims or one for each. nn::MaxPool1d({.kernel_size = 3, .stride = 2}).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/nn/layer.h"
#include "kiln/nn/real.h"
#include "kiln/nn/size_nd.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

// ---- The largest of each window

struct MaxPoolConfig {
  Required<SizeNd> kernel_size = {};
  OptionalField<SizeNd> stride = {};  // without one: kernel_size
  SizeNd padding = 0;
  SizeNd dilation = 1;
  bool return_indices = false;  // what Python's forward gives
  bool ceil_mode = false;
  KILN_CONFIG(MaxPoolConfig, kernel_size, doc(stride, "null: kernel_size"), padding, dilation,
              return_indices, ceil_mode)
};

class MaxPoolLayer : public Layer<MaxPoolConfig> {
 public:
  Tensor forward(const Tensor& x) const;
  // Also where the maxima were in the flattened spatial dims, which max unpooling takes.
  std::pair<Tensor, Tensor> forward_with_indices(const Tensor& x) const;
  std::string extra_repr() const override;

 protected:
  MaxPoolLayer(int dims, MaxPoolConfig config);

 private:
  int dims_;
};

// ---- The mean of each window

struct AvgPool1dConfig {
  Required<SizeNd> kernel_size = {};
  OptionalField<SizeNd> stride = {};  // without one: kernel_size
  SizeNd padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  KILN_CONFIG(AvgPool1dConfig, kernel_size, doc(stride, "null: kernel_size"), padding, ceil_mode,
              count_include_pad)
};
struct AvgPool3dConfig {
  Required<SizeNd> kernel_size = {};
  OptionalField<SizeNd> stride = {};  // without one: kernel_size
  SizeNd padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override = {};
  KILN_CONFIG(AvgPool3dConfig, kernel_size, doc(stride, "null: kernel_size"), padding, ceil_mode,
              count_include_pad, divisor_override)
};

class AvgPool1d : public Layer<AvgPool1dConfig> {
 public:
  explicit AvgPool1d(AvgPool1dConfig config);
  KILN_MODULE_DECLARED(AvgPool1d)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

class AvgPool3d : public Layer<AvgPool3dConfig> {
 public:
  explicit AvgPool3d(AvgPool3dConfig config);
  KILN_MODULE_DECLARED(AvgPool3d)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

// ---- (sum over the window of x^norm_type)^(1 / norm_type)

struct LPPoolConfig {
  Required<Real> norm_type = {};
  Required<SizeNd> kernel_size = {};
  OptionalField<SizeNd> stride = {};  // without one: kernel_size
  bool ceil_mode = false;
  KILN_CONFIG(LPPoolConfig, norm_type, kernel_size, doc(stride, "null: kernel_size"), ceil_mode)
};

class LPPoolLayer : public Layer<LPPoolConfig> {
 public:
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;

 protected:
  LPPoolLayer(int dims, LPPoolConfig config) : Layer(std::move(config)), dims_(dims) {}

 private:
  int dims_;
};

// ---- Each element back where max pooling with indices took it from, 0 elsewhere

struct MaxUnpoolConfig {
  Required<SizeNd> kernel_size = {};
  OptionalField<SizeNd> stride = {};  // without one: kernel_size
  SizeNd padding = 0;
  KILN_CONFIG(MaxUnpoolConfig, kernel_size, doc(stride, "null: kernel_size"), padding)
};

class MaxUnpoolLayer : public Layer<MaxUnpoolConfig> {
 public:
  // output_size: the spatial sizes, where they are not those that the options give; or all sizes.
  Tensor forward(const Tensor& x, const Tensor& indices,
                 const std::optional<std::vector<int64_t>>& output_size = {}) const;
  std::string extra_repr() const override;

 protected:
  MaxUnpoolLayer(const char* name, int dims, MaxUnpoolConfig config);

 private:
  int dims_;
};

// ---- As many windows as are wanted. SizeNd::kNone among the sizes keeps the input's.

struct AdaptiveMaxPoolConfig {
  Required<SizeNd> output_size = {};
  bool return_indices = false;  // what Python's forward gives
  KILN_CONFIG(AdaptiveMaxPoolConfig, output_size, return_indices)
};
struct AdaptiveAvgPoolConfig {
  Required<SizeNd> output_size = {};
  KILN_CONFIG(AdaptiveAvgPoolConfig, output_size)
};

class AdaptiveMaxPoolLayer : public Layer<AdaptiveMaxPoolConfig> {
 public:
  Tensor forward(const Tensor& x) const;
  std::pair<Tensor, Tensor> forward_with_indices(const Tensor& x) const;
  std::string extra_repr() const override;

 protected:
  AdaptiveMaxPoolLayer(int dims, AdaptiveMaxPoolConfig config)
      : Layer(std::move(config)), dims_(dims) {}

 private:
  int dims_;
};

class AdaptiveAvgPoolLayer : public Layer<AdaptiveAvgPoolConfig> {
 public:
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;

 protected:
  AdaptiveAvgPoolLayer(int dims, AdaptiveAvgPoolConfig config)
      : Layer(std::move(config)), dims_(dims) {}

 private:
  int dims_;
};

// ---- The classes

class MaxPool1d : public MaxPoolLayer {
 public:
  explicit MaxPool1d(MaxPoolConfig config) : MaxPoolLayer(1, std::move(config)) {}
  KILN_MODULE_DECLARED(MaxPool1d)
};
class MaxPool3d : public MaxPoolLayer {
 public:
  explicit MaxPool3d(MaxPoolConfig config) : MaxPoolLayer(3, std::move(config)) {}
  KILN_MODULE_DECLARED(MaxPool3d)
};
class LPPool1d : public LPPoolLayer {
 public:
  explicit LPPool1d(LPPoolConfig config) : LPPoolLayer(1, std::move(config)) {}
  KILN_MODULE_DECLARED(LPPool1d)
};
class LPPool2d : public LPPoolLayer {
 public:
  explicit LPPool2d(LPPoolConfig config) : LPPoolLayer(2, std::move(config)) {}
  KILN_MODULE_DECLARED(LPPool2d)
};
class LPPool3d : public LPPoolLayer {
 public:
  explicit LPPool3d(LPPoolConfig config) : LPPoolLayer(3, std::move(config)) {}
  KILN_MODULE_DECLARED(LPPool3d)
};
class MaxUnpool1d : public MaxUnpoolLayer {
 public:
  explicit MaxUnpool1d(MaxUnpoolConfig config)
      : MaxUnpoolLayer("MaxUnpool1d", 1, std::move(config)) {}
  KILN_MODULE_DECLARED(MaxUnpool1d)
};
class MaxUnpool2d : public MaxUnpoolLayer {
 public:
  explicit MaxUnpool2d(MaxUnpoolConfig config)
      : MaxUnpoolLayer("MaxUnpool2d", 2, std::move(config)) {}
  KILN_MODULE_DECLARED(MaxUnpool2d)
};
class MaxUnpool3d : public MaxUnpoolLayer {
 public:
  explicit MaxUnpool3d(MaxUnpoolConfig config)
      : MaxUnpoolLayer("MaxUnpool3d", 3, std::move(config)) {}
  KILN_MODULE_DECLARED(MaxUnpool3d)
};
// Sizes in braces, AdaptiveAvgPool2d({7, 7}), are a constructor of their own. It is for two numbers
// and more, and a template: to GCC, braces that name an option would be numbers, too.
#define KILN_ADAPTIVE_POOL(Name, Base, dims)                                                    \
  class Name : public Base##Layer {                                                             \
   public:                                                                                      \
    explicit Name(Base##Config config) : Base##Layer(dims, std::move(config)) {}                \
    template <std::integral T, size_t kCount>                                                   \
      requires(kCount > 1)                                                                      \
    explicit Name(const T (&output_size)[kCount])                                               \
        : Name(Base##Config{Shape(std::vector<int64_t>(output_size, output_size + kCount))}) {} \
    KILN_MODULE_DECLARED(Name)                                                                  \
  };
KILN_ADAPTIVE_POOL(AdaptiveMaxPool1d, AdaptiveMaxPool, 1)
KILN_ADAPTIVE_POOL(AdaptiveMaxPool2d, AdaptiveMaxPool, 2)
KILN_ADAPTIVE_POOL(AdaptiveMaxPool3d, AdaptiveMaxPool, 3)
KILN_ADAPTIVE_POOL(AdaptiveAvgPool1d, AdaptiveAvgPool, 1)
KILN_ADAPTIVE_POOL(AdaptiveAvgPool2d, AdaptiveAvgPool, 2)
KILN_ADAPTIVE_POOL(AdaptiveAvgPool3d, AdaptiveAvgPool, 3)
#undef KILN_ADAPTIVE_POOL

}  // namespace kiln::nn
