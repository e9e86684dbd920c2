// Quantized: a parameter that is kept in 8 or 4 bits a value, with scales.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kiln/nn/parametrization.h"
#include "kiln/nn/path_filter.h"

namespace kiln::nn {

// The parameter's state is then two buffers: weight_quantized.values and weight_quantized.scales
// (QuantLayout has their shapes). Linear layers multiply by it as it is; whatever else reads the
// parameter gets it dequantized, in the dtype that it had. It is not trained; gradients flow
// through it to the inputs.
class Quantized : public Parametrization {
 public:
  // Throws ValueError for a parameter that is not floating point.
  Quantized(Param<Tensor> former, const QuantScheme& scheme);

  Buffer values;
  Buffer scales;
  // The quantized tensor, which shares memory with the buffers.
  Tensor tensor() const;
  const QuantScheme& scheme() const { return scheme_; }
  // Of the values and scales.
  int64_t bytes() const;

  Tensor value() const override { return dequantize(tensor(), like_->dtype()); }
  Tensor linear(TensorArg x, const Tensor& bias) const override;
  std::string suffix() const override { return "quantized"; }
  std::string extra_repr() const override;

  // Where there is no parameter that would say it.
  const Param<Tensor>& like() const override { return none_; }
  Device device() const override { return values->device(); }
  Shape shape() const override { return shape_; }
  std::optional<DType> dtype() const override { return like_->dtype(); }
  bool is_require_grad() const override { return false; }
  void set_require_grad(bool value) override;

 private:
  Param<Tensor> none_;
  QuantScheme scheme_;
  Shape shape_;
  // Empty and in no state dict: has the dtype of value(), and is cast with the module.
  Buffer like_;
  void visit_members(MemberVisitor& visitor) override;
  KILN_MODULE_DECLARED_WITHOUT_OPTIONS(Quantized)
};

// What quantize_ did.
struct QuantizeReport {
  struct Entry {
    std::string path;
    Shape shape;
    int64_t bytes_before = 0;
    int64_t bytes_after = 0;
    double max_error = 0.0;  // the largest |value - dequantized value|
  };
  std::vector<Entry> entries;
  int64_t bytes_before() const;
  int64_t bytes_after() const;
};
// A line for each parameter, and the sum.
std::string to_string(const QuantizeReport& report);

// Quantizes the weights of Linear and Conv2d layers or, with a filter, all floating point
// parameters of two dims or more that it matches, by their own path ("fc1.weight") or their
// module's ("fc1"). Initializes lazy ones. Throws ValueError when nothing matches.
//
//   nn::QuantizeReport report = nn::quantize_(model, {.bits = 4, .level = QuantLevel::block});
//   std::cout << to_string(report);
//
// State dicts, records and files hold values and scales; a model that loads them is quantized in
// the same way first.
QuantizeReport quantize_(Module& module, const QuantScheme& scheme = {.level = QuantLevel::channel},
                         const PathFilter& filter = {});
// Makes the quantized parameters that match ordinary ones, frozen.
void dequantize_(Module& module, const PathFilter& filter = {});

namespace detail {
// Whether quantize_ and lora mean this parameter.
bool is_target(const PathFilter& filter, const std::string& path, const Param<Tensor>& param,
               Module& owner, bool convolutions);
}  // namespace detail

}  // namespace kiln::nn
