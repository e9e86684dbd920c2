#include "kiln/optim/adamw_8bit.h"

#include "kiln/backend/dynamic_code.h"
#include "kiln/core/error.h"
#include "kiln/optim/ruled_optimizer_impl.h"
#include "kiln/tensor/nn/optimizer_steps.h"

namespace kiln::optim {

std::vector<float> dynamic_code(bool with_signs) {
  const auto& numbers = kiln::dynamic_code(with_signs).numbers;
  return {numbers.begin(), numbers.end()};
}

void AdamW8bitRule::check(const std::string& op, const Options& options) {
  detail::check_not_negative(op, "eps", options.eps);
  detail::check_betas(op, options.betas);
  if (options.block_size < 1) {
    throw_error<ValueError>(op, ": block_size must be at least 1; got ", options.block_size);
  }
  if (options.min_8bit_size < 0) {
    throw_error<ValueError>(op, ": min_8bit_size must not be negative; got ",
                            options.min_8bit_size);
  }
}

std::vector<StateInfo> AdamW8bitRule::slots(const Options& options) {
  const int64_t least = options.min_8bit_size;
  const StateInfo codes{.name = "state1", .dtype = u8, .from = least};
  const StateInfo scales{.name = "absmax1",
                         .like = StateShape::blocks,
                         .dtype = f32,
                         .from = least,
                         .block = options.block_size};
  const StateInfo small{.name = "state1", .dtype = f32, .below = least};
  const auto second = [](StateInfo info, const char* name) {
    info.name = name;
    return info;
  };
  return {codes, second(codes, "state2"), scales, second(scales, "absmax2"),
          small, second(small, "state2")};
}

void AdamW8bitRule::compose(const Options& options, int64_t t, Tensor& p, const Tensor& g,
                            std::span<Tensor> slots) {
  const AdamW8bitStep step{.lr = options.lr,
                           .beta1 = options.betas[0],
                           .beta2 = options.betas[1],
                           .eps = options.eps,
                           .weight_decay = options.weight_decay,
                           .step = t,
                           .block = options.block_size};
  if (slots[0].defined()) {
    kiln::detail::adamw_8bit_step(p, g, slots.first(2), slots.subspan(2, 2), step);
    return;
  }
  // A small parameter: AdamW, in f32 or, where it is f64, in f64.
  const DType dtype = p.dtype() == f64 ? f64 : f32;
  const Tensor gradient = g.to(dtype);
  Tensor all[] = {p.to(dtype), slots[4].to(dtype), slots[5].to(dtype)};
  const std::span<Tensor> state[] = {std::span(&all[1], 1), std::span(&all[2], 1)};
  kiln::detail::optimizer_step(std::span(&all[0], 1), std::span(&gradient, 1), state, step.adam());
  Tensor* const to[] = {&p, &slots[4], &slots[5]};
  for (size_t i = 0; i < 3; ++i) {
    if (!all[i].is_same(*to[i])) to[i]->copy_(all[i]);
  }
}

template class RuledOptimizer<AdamW8bitRule>;

}  // namespace kiln::optim
