#include "kiln/nn/initializer.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/nn/repr.h"

namespace kiln::nn {

using detail::repr;

Initializer Initializer::constant(double value) { return {Kind::constant, value}; }
Initializer Initializer::ones() { return constant(1.0); }
Initializer Initializer::zeros() { return constant(0.0); }
Initializer Initializer::uniform(double min, double max) {
  if (!(min <= max)) {
    throw_error<ValueError>("Initializer::uniform: min must not be above max; got ", repr(min),
                            " and ", repr(max));
  }
  return {Kind::uniform, min, max};
}
Initializer Initializer::normal(double mean, double std) {
  if (!(std >= 0.0)) {
    throw_error<ValueError>("Initializer::normal: std must not be negative; got ", repr(std));
  }
  return {Kind::normal, mean, std};
}
Initializer Initializer::kaiming_uniform(double gain, bool fan_out_only) {
  return {Kind::kaiming_uniform, gain, 0.0, fan_out_only};
}
Initializer Initializer::kaiming_normal(double gain, bool fan_out_only) {
  return {Kind::kaiming_normal, gain, 0.0, fan_out_only};
}
Initializer Initializer::xavier_uniform(double gain) { return {Kind::xavier_uniform, gain}; }
Initializer Initializer::xavier_normal(double gain) { return {Kind::xavier_normal, gain}; }
Initializer Initializer::orthogonal(double gain) { return {Kind::orthogonal, gain}; }

void Initializer::operator()(Tensor& x) const {
  const auto fans = [&] { return fans_ ? *fans_ : init::calculate_fan(x.shape()); };
  // gain sqrt(parts / fan), which is nothing to draw from where a fan is 0.
  const auto scaled = [&](double parts, int64_t fan) {
    return fan == 0 ? 0.0 : a_ * std::sqrt(parts / static_cast<double>(fan));
  };
  const auto one = [&] { return fan_out_only_ ? fans().fan_out : fans().fan_in; };
  const auto both = [&] { return fans().fan_in + fans().fan_out; };
  const auto within = [&](double bound) { init::uniform_(x, -bound, bound); };
  switch (kind_) {
    case Kind::constant:
      init::constant_(x, a_);
      break;
    case Kind::uniform:
      init::uniform_(x, a_, b_);
      break;
    case Kind::normal:
      init::normal_(x, a_, b_);
      break;
    case Kind::kaiming_uniform:
      within(scaled(3.0, one()));
      break;
    case Kind::kaiming_normal:
      init::normal_(x, 0.0, scaled(1.0, one()));
      break;
    case Kind::xavier_uniform:
      within(scaled(6.0, both()));
      break;
    case Kind::xavier_normal:
      init::normal_(x, 0.0, scaled(2.0, both()));
      break;
    case Kind::orthogonal:
      init::orthogonal_(x, a_);
      break;
  }
}

Param<Tensor> Initializer::init(const Shape& shape, const ParamOptions& options) const {
  ParamOptions own = options;
  own.initializer = {};
  return parameter(shape, *this, own);
}

Param<Tensor> Initializer::init_with(const Shape& shape, int64_t fan_in, int64_t fan_out,
                                     const ParamOptions& options) const {
  if (fan_in < 0 || fan_out < 0) {
    throw_error<ValueError>("Initializer::init_with: fans must not be negative; got ", fan_in,
                            " and ", fan_out);
  }
  Initializer with = *this;
  with.fans_ = init::Fans{fan_in, fan_out};
  return with.init(shape, options);
}

std::string Initializer::to_string() const {
  const std::string gain = "(gain=" + repr(a_);
  const std::string fan = concat(", fan_out_only=", fan_out_only_ ? "True)" : "False)");
  switch (kind_) {
    case Kind::constant:
      return concat("Constant(value=", repr(a_), ")");
    case Kind::uniform:
      return concat("Uniform(min=", repr(a_), ", max=", repr(b_), ")");
    case Kind::normal:
      return concat("Normal(mean=", repr(a_), ", std=", repr(b_), ")");
    case Kind::kaiming_uniform:
      return "KaimingUniform" + gain + fan;
    case Kind::kaiming_normal:
      return "KaimingNormal" + gain + fan;
    case Kind::xavier_uniform:
      return "XavierUniform" + gain + ")";
    case Kind::xavier_normal:
      return "XavierNormal" + gain + ")";
    case Kind::orthogonal:
      break;
  }
  return "Orthogonal" + gain + ")";
}

}  // namespace kiln::nn
