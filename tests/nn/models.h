// Models that several tests look at.
#pragma once

#include <vector>

#include "kiln/nn/nn.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::test {

struct Block : nn::Module {
  nn::Linear fc{2, 2};
  nn::ReLU act;
  KILN_MODULE(Block, fc, act)

  Tensor forward(const Tensor& x) { return act(fc(x)); }
};

// Every kind of part: modules, a vector of them, a nested module, a parameter, buffers of both
// kinds.
struct Net : nn::Module {
  nn::Conv2d conv{1, 2, 3};
  std::vector<nn::Linear> layers{{2, 2}, {2, 2}, {2, 3}};
  Block block;
  nn::Param<Tensor> scale = nn::parameter({3}, nn::init::zeros_);
  nn::Sequential head{nn::Linear{3, 2}, nn::Tanh{}};
  nn::Buffer steps{zeros({}, {i64})};
  nn::Buffer scratch{zeros({1}), false};
  KILN_MODULE(Net, conv, layers, block, scale, head, steps, scratch)

  std::string extra_repr() const override { return "a=1\nb=2"; }
  // x [N, 1, 3, 3] -> [N, 2]
  Tensor forward(Tensor x) {
    x = block(conv(x).flatten(1));
    for (auto& layer : layers) x = layer(x);
    return head(x * scale);
  }
};

inline const std::vector<std::string> kNetKeys = {
    "scale",           "steps",           "conv.weight",   "conv.bias",       "layers.0.weight",
    "layers.0.bias",   "layers.1.weight", "layers.1.bias", "layers.2.weight", "layers.2.bias",
    "block.fc.weight", "block.fc.bias",   "head.0.weight", "head.0.bias"};

}  // namespace kiln::test
