// LoRA: fine-tuning by updates of low rank (Hu et al., 2021), and QLoRA, the same over a quantized
// base (Dettmers et al., 2023). The model's code stays as it is: the weights are computed.
//
//   nn::lora(model, {.rank = 8, .alpha = 16, .targets = {"*.query", "*.value"}});
//   optim::AdamW adam(optim::param_groups(model, {}));       // trains A and B alone
//   ...
//   io::save_into(model, "adapter.safetensors", {.filter = nn::lora_parameters()});
//   nn::merge_and_unload(model);                             // an ordinary model again
#pragma once

#include <cstdint>
#include <string>

#include "kiln/nn/parametrization.h"
#include "kiln/nn/path_filter.h"
#include "kiln/nn/quantized.h"

namespace kiln::nn {

struct LoraOptions {
  int64_t rank = 8;
  double alpha = 16.0;   // the update counts alpha / rank times
  double dropout = 0.0;  // of the update's input, in training
  // By the path of a weight or of its module; of two dims or more. Everything: the weights of all
  // Linear layers.
  PathFilter targets = {};
  // Freezes every parameter of the module but the new A and B.
  bool freeze_others = true;
};

// W + alpha / rank B A, with A [rank, in] and B [out, rank], where a weight of more than two dims
// is seen as [dim 0, the rest]. A starts as a Linear layer's weight would, B as zeros, so that
// nothing changes at first. A Linear layer computes x W^T + alpha / rank (dropout(x) A^T) B^T and
// never the sum.
//
// The base keeps its name in the state dict ("fc.weight"), so that the base model's files load; the
// new parameters are fc.weight_lora.A and fc.weight_lora.B, and fc.weight_lora.merged says whether
// the update is in the base already.
class Lora : public Parametrization {
 public:
  Lora(Param<Tensor> former, const LoraOptions& options);

  Param<Tensor> base;
  Param<Tensor> A;
  Param<Tensor> B;
  Buffer merged;  // bool []
  void visit_members(MemberVisitor& visitor) override;
  KILN_MODULE_DECLARED_WITHOUT_OPTIONS(Lora)
  void visit_unnamed(MemberVisitor& visitor) override { visitor.parameter("base", base); }

  // alpha / rank B A, in the base's shape.
  Tensor delta() const;
  Tensor value() const override;
  Tensor linear(TensorArg x, const Tensor& bias) const override;
  Tensor conv2d(TensorArg x, const Tensor& bias, const ConvOptions& options) const override;

  // Adds the update to the base's values, or takes it out again. Throws ValueError when the base is
  // quantized: its few bits cannot hold the sum.
  void merge();
  void unmerge();
  bool is_merged() const { return merged->item<bool>(); }

  void visit_as(MemberVisitor& visitor, std::string_view name) override;
  const Param<Tensor>& like() const override { return base; }
  std::string suffix() const override { return "lora"; }
  std::string extra_repr() const override;
  bool is_require_grad() const override { return A.lazy_is_require_grad(); }

  int64_t rank() const { return rank_; }

 private:
  void add_to_base(double sign);

  int64_t rank_;
  double scaling_;
  double dropout_;
};

// Attaches updates to the weights that `targets` means; returns how many there were. Lazy weights
// stay lazy. Throws ValueError when nothing matches, and for a rank below 1 or a dropout outside
// [0, 1).
int64_t lora(Module& module, const LoraOptions& options = {});
// Quantizes the same weights first: the base then takes a quarter or an eighth of its memory,
// training too, since Linear layers save the quantized weight for their gradient.
int64_t qlora(Module& module, const LoraOptions& options = {},
              const QuantScheme& scheme = {.bits = 4, .level = QuantLevel::block, .block = 64});

// All updates of a module: into the base and out again, which gives the same outputs, faster.
void merge(Module& module);
void unmerge(Module& module);
// Makes the weights ordinary parameters again, frozen: with the updates, or as they were without
// (a quantized base stays quantized).
void merge_and_unload(Module& module);
void unload(Module& module);

// The paths of A and B: for collect, apply, save_into, load_from, freeze and optimizer groups.
PathFilter lora_parameters();

}  // namespace kiln::nn
