// MLP, LeNet, and the networks of deep Q learning.
#pragma once

#include <optional>
#include <vector>

#include "kiln/models/vision_blocks.h"

namespace kiln::models {

// Linear layers of the given widths, each but the last followed by ReLU and dropout:
// [.., in_channels] -> [.., hidden_channels.back()]. Keys as torchvision.ops.MLP has them.
nn::Sequential mlp(int64_t in_channels, const std::vector<int64_t>& hidden_channels,
                   double dropout = 0.0);

struct LeNetOptions {
  int64_t num_classes = 10;
  int64_t in_channels = 1;
};
// LeNet-5 (LeCun et al., 1998) with max pools and ReLU: images [N, in_channels, 28 or 32, same] ->
// [N, num_classes].
class LeNet : public nn::Module {
 public:
  explicit LeNet(const LeNetOptions& options = {});
  nn::Conv2d conv1, conv2;
  nn::Linear fc1, fc2, fc3;
  KILN_MODULE_DECLARED(LeNet)
  Tensor forward(const Tensor& x);
};

struct DQNOptions {
  int64_t n_observations = 0;
  int64_t n_actions = 0;
  int64_t hidden = 128;
  bool dueling = false;  // a state's value plus each action's advantage (Wang et al., 2016)
};
// Observations [N, n_observations] -> a value for each action, [N, n_actions] (Mnih et al., 2015).
class DQN : public nn::Module {
 public:
  explicit DQN(const DQNOptions& options);
  nn::Linear layer1, layer2, layer3;
  std::optional<nn::Linear> value;
  KILN_MODULE_DECLARED(DQN)
  Tensor forward(const Tensor& x);
};

// Stacks of frames [N, in_channels, 84, 84] of bytes or of numbers from 0 to 255 -> a value for
// each action.
class AtariDQN : public nn::Module {
 public:
  explicit AtariDQN(int64_t n_actions, int64_t in_channels = 4);
  nn::Sequential network;
  KILN_MODULE_DECLARED(AtariDQN)
  Tensor forward(const Tensor& x);
};

}  // namespace kiln::models
