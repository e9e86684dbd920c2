// Initializer: a way to fill a parameter, as a value. Burn's enumeration of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kiln/nn/init.h"
#include "kiln/nn/param.h"

namespace kiln::nn {

// It is called when the parameter is first read:
//
//   Linear fc({.in_features = 4, .out_features = 2},
//             {.initializer = Initializer::xavier_normal()});       // the layer's weight
//   Param<Tensor> w = Initializer::uniform(-0.1, 0.1).init({3, 4});
//
// In a layer's ParamOptions it fills the weights, which have two dims and more; biases and the
// weights of norms keep their way. Where fans matter they are those of init::calculate_fan, unless
// init_with() gives others. reset_parameters() fills as the layer itself does.
class Initializer {
 public:
  static Initializer constant(double value);
  static Initializer ones();
  static Initializer zeros();
  static Initializer uniform(double min, double max);
  static Initializer normal(double mean, double std);
  // Uniform within gain sqrt(3 / fan); normal of deviation gain / sqrt(fan), where fan is fan_in or
  // fan_out (He et al., 2015).
  static Initializer kaiming_uniform(double gain = 1.0, bool fan_out_only = false);
  static Initializer kaiming_normal(double gain = 1.0, bool fan_out_only = false);
  // Uniform within gain sqrt(6 / (fan_in + fan_out)); normal of deviation
  // gain sqrt(2 / (fan_in + fan_out)) (Glorot & Bengio, 2010).
  static Initializer xavier_uniform(double gain = 1.0);
  static Initializer xavier_normal(double gain = 1.0);
  static Initializer orthogonal(double gain = 1.0);

  // Fills x, without recording. Throws ShapeError where fans or orthogonal rows need two dims.
  void operator()(Tensor& x) const;

  // A lazy parameter. With fans of one's own, for biases and other shapes.
  Param<Tensor> init(const Shape& shape, const ParamOptions& options = {}) const;
  Param<Tensor> init_with(const Shape& shape, int64_t fan_in, int64_t fan_out,
                          const ParamOptions& options = {}) const;

  // "KaimingUniform(gain=1.0, fan_out_only=False)"
  std::string to_string() const;

 private:
  enum class Kind : uint8_t {
    constant,
    uniform,
    normal,
    kaiming_uniform,
    kaiming_normal,
    xavier_uniform,
    xavier_normal,
    orthogonal
  };
  Initializer(Kind kind, double a, double b = 0.0, bool fan_out_only = false)
      : kind_(kind), a_(a), b_(b), fan_out_only_(fan_out_only) {}

  Kind kind_;
  double a_, b_;  // value; min and max; mean and std; gain
  bool fan_out_only_;
  std::optional<init::Fans> fans_;
};

}  // namespace kiln::nn
