// Layers that pad the last one, two or three dims: with a number, with zeros, mirrored, with the
// edge, and from the other end.
//
// x [N, C, ..] or [C, ..] (any shape for numbers and zeros). `padding` is one width for all sides,
// or two for each padded dim, the last dim's first: {left, right, top, bottom, front, back}.
// functional::pad has the modes and the errors.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kiln/nn/layer.h"
#include "kiln/nn/real.h"
#include "kiln/nn/size_nd.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

struct PadConfig {
  Required<SizeNd> padding = {};
  KILN_CONFIG(PadConfig, doc(padding, "all sides, or two for each dim, the last dim's first"))
};
struct ConstantPadConfig {
  Required<SizeNd> padding = {};
  Required<Real> value = {};
  KILN_CONFIG(ConstantPadConfig,
              doc(padding, "all sides, or two for each dim, the last dim's first"), value)
};

// What they have in common: the class's name, how many dims are padded, and functional::pad's mode.
class PadLayer : public Layer<PadConfig> {
 public:
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;

 protected:
  PadLayer(const char* name, int dims, const char* mode, const PadConfig& config);

 private:
  const char* name_;
  int dims_;
  const char* mode_;
};

class ConstantPadLayer : public Layer<ConstantPadConfig> {
 public:
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;

 protected:
  ConstantPadLayer(const char* name, int dims, const ConstantPadConfig& config);
};

// The template takes {1, 1, 2, 2}; it is one, and for two numbers or more, so that braces that name
// an option are the configuration's.
#define KILN_PAD_LAYER(Name, dims, mode)                                             \
  class Name : public PadLayer {                                                     \
   public:                                                                           \
    explicit Name(const PadConfig& config) : PadLayer(#Name, dims, mode, config) {}  \
    template <std::integral T, size_t kCount>                                        \
      requires(kCount > 1)                                                           \
    explicit Name(const T (&padding)[kCount])                                        \
        : Name(PadConfig{Shape(std::vector<int64_t>(padding, padding + kCount))}) {} \
    KILN_MODULE_DECLARED(Name)                                                       \
  };
#define KILN_CONSTANT_PAD_LAYER(Name, dims)                                                   \
  class Name : public ConstantPadLayer {                                                      \
   public:                                                                                    \
    explicit Name(const ConstantPadConfig& config) : ConstantPadLayer(#Name, dims, config) {} \
    Name(const SizeNd& padding, Real value) : Name(ConstantPadConfig{padding, value}) {}      \
    KILN_MODULE_DECLARED(Name)                                                                \
  };

KILN_CONSTANT_PAD_LAYER(ConstantPad1d, 1)
KILN_CONSTANT_PAD_LAYER(ConstantPad2d, 2)
KILN_CONSTANT_PAD_LAYER(ConstantPad3d, 3)
KILN_PAD_LAYER(ZeroPad1d, 1, "constant")
KILN_PAD_LAYER(ZeroPad2d, 2, "constant")
KILN_PAD_LAYER(ZeroPad3d, 3, "constant")
KILN_PAD_LAYER(ReflectionPad1d, 1, "reflect")
KILN_PAD_LAYER(ReflectionPad2d, 2, "reflect")
KILN_PAD_LAYER(ReflectionPad3d, 3, "reflect")
KILN_PAD_LAYER(ReplicationPad1d, 1, "replicate")
KILN_PAD_LAYER(ReplicationPad2d, 2, "replicate")
KILN_PAD_LAYER(ReplicationPad3d, 3, "replicate")
KILN_PAD_LAYER(CircularPad1d, 1, "circular")
KILN_PAD_LAYER(CircularPad2d, 2, "circular")
KILN_PAD_LAYER(CircularPad3d, 3, "circular")
#undef KILN_PAD_LAYER
#undef KILN_CONSTANT_PAD_LAYER

}  // namespace kiln::nn
