// The op separable_block: operands made ready for separable_block.h, or one convolution after the
// other where that is as fast.
#include <utility>

#include "kiln/backend/cpu/conv/separable_block.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/operand.h"

namespace kiln {

namespace cpu {
namespace {

Shape result_of(const ConvSizes& s) {
  return {s.batch, s.groups * s.out, s.out_height, s.out_width};
}

// The convolutions of 1 x 1 have no other options than their size.
std::optional<SeparableBlock::Pointwise> pointwise(const Shape& x, const OptionalOperand& weight,
                                                   const OptionalOperand& bias) {
  if (weight.get() == nullptr) return std::nullopt;
  const HostTensor& w = **weight.get();
  return SeparableBlock::Pointwise{ConvSizes(x, w.shape(), ConvOptions{}),
                                   {w.data_as<const float>(), w.storage().get()},
                                   bias.data<float>(),
                                   {}};
}

}  // namespace
}  // namespace cpu

HostHandle CpuOps::float_separable_block(Arg<HostHandle> x, const HostHandle* expand,
                                         const HostHandle* expand_bias, Activation expanded,
                                         Arg<HostHandle> weight, const HostHandle* bias,
                                         Activation activation, const HostHandle* project,
                                         const HostHandle* project_bias, const HostHandle* residual,
                                         Activation projected, const ConvOptions& options) {
  if (x.get()->dtype() == DType::f32) {
    const HostHandle in = cpu::contiguous(x.get()), taps = cpu::contiguous(weight.get());
    const cpu::OptionalOperand wide(expand, cpu::contiguous), narrow(project, cpu::contiguous);
    const cpu::OptionalOperand wide_bias(expand_bias, cpu::contiguous);
    const cpu::OptionalOperand b(bias, cpu::contiguous);
    const cpu::OptionalOperand narrow_bias(project_bias, cpu::contiguous);
    const cpu::OptionalOperand added(residual, cpu::contiguous);
    const auto first = cpu::pointwise(in->shape(), wide, wide_bias);
    const Shape between = first ? cpu::result_of(first->sizes) : in->shape();
    cpu::SeparableBlock block(cpu::ConvSizes(between, taps->shape(), options));
    block.expand = first;
    block.project = cpu::pointwise(cpu::result_of(block.depthwise), narrow, narrow_bias);
    const Shape shape = cpu::result_of(block.project ? block.project->sizes : block.depthwise);
    if (shape.numel() > 0 && cpu::pays_together(block)) {
      HostHandle out = host::empty(shape, DType::f32, in->device());
      const auto finish = [](Activation a, const float* its_residual, const float* y) {
        return cpu::Finish<float>(cpu::activation_kernel(a, DType::f32), its_residual, y);
      };
      block.x = in->data_as<const float>();
      block.weight = taps->data_as<const float>();
      block.bias = b.data<float>();
      block.y = out->data_as<float>();
      block.finish = finish(activation, nullptr, nullptr);
      if (block.expand) block.expand->finish = finish(expanded, nullptr, nullptr);
      if (block.project) {
        block.project->finish = finish(projected, added.data<float>(), block.y);
      }
      cpu::run_together(block);
      return out;
    }
  }
  HostHandle out = x.take();
  if (expand != nullptr) {
    out = float_conv2d_activation(std::move(out), *expand, expand_bias, nullptr, expanded, {});
  }
  out = float_conv2d_activation(std::move(out), weight, bias, nullptr, activation, options);
  if (project == nullptr) return out;
  return float_conv2d_activation(std::move(out), *project, project_bias, residual, projected, {});
}

}  // namespace kiln
