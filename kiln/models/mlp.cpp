#include "kiln/models/mlp.h"

#include "kiln/core/error.h"
#include "kiln/nn/dropout.h"
#include "kiln/nn/flatten.h"
#include "kiln/nn/relu.h"
#include "kiln/tensor/nn/padding.h"
#include "kiln/tensor/nn/pooling.h"

namespace kiln::models {

nn::Sequential mlp(int64_t in_channels, const std::vector<int64_t>& hidden, double dropout) {
  if (hidden.empty()) {
    throw_error<ValueError>("mlp: hidden_channels must name at least one width; got none");
  }
  nn::Sequential out;
  int64_t inputs = in_channels;
  for (size_t i = 0; i < hidden.size(); ++i) {
    require_positive("mlp", "each width", inputs);
    require_positive("mlp", "each width", hidden[i]);
    out.push_back(nn::Linear(inputs, hidden[i]));
    if (i + 1 < hidden.size()) out.push_back(nn::ReLU());
    out.push_back(nn::Dropout(dropout));
    inputs = hidden[i];
  }
  return out;
}

LeNet::LeNet(const LeNetOptions& o)
    : conv1(o.in_channels, 6, 5),
      conv2(6, 16, 5),
      fc1(16 * 5 * 5, 120),
      fc2(120, 84),
      fc3(84, o.num_classes) {
  require_positive("LeNet", "num_classes", o.num_classes);
  require_positive("LeNet", "in_channels", o.in_channels);
}

Tensor LeNet::forward(const Tensor& x) {
  const Tensor image = x.size(-1) == 28 ? functional::pad(x, {2, 2, 2, 2}) : x;
  Tensor y = functional::max_pool2d(relu(conv1(image)), 2);
  y = functional::max_pool2d(relu(conv2(y)), 2);
  return fc3(relu(fc2(relu(fc1(y.flatten(1))))));
}
KILN_MODULE_DEFINED(LeNet, conv1, conv2, fc1, fc2, fc3)

DQN::DQN(const DQNOptions& o)
    : layer1(o.n_observations, o.hidden),
      layer2(o.hidden, o.hidden),
      layer3(o.hidden, o.n_actions) {
  require_positive("DQN", "n_observations", o.n_observations);
  require_positive("DQN", "n_actions", o.n_actions);
  require_positive("DQN", "hidden", o.hidden);
  if (o.dueling) value.emplace(o.hidden, 1);
}

Tensor DQN::forward(const Tensor& x) {
  const Tensor hidden = relu(layer2(relu(layer1(x))));
  const Tensor advantage = layer3(hidden);
  if (!value) return advantage;
  return (*value)(hidden) + advantage - advantage.mean(-1, true);
}
KILN_MODULE_DEFINED(DQN, layer1, layer2, layer3, value)

AtariDQN::AtariDQN(int64_t n_actions, int64_t in_channels)
    : network(nn::Conv2d(in_channels, 32, 8, {.stride = 4}), nn::ReLU(),
              nn::Conv2d(32, 64, 4, {.stride = 2}), nn::ReLU(), nn::Conv2d(64, 64, 3), nn::ReLU(),
              nn::Flatten(), nn::Linear(3136, 512), nn::ReLU(), nn::Linear(512, n_actions)) {
  require_positive("AtariDQN", "n_actions", n_actions);
  require_positive("AtariDQN", "in_channels", in_channels);
}

Tensor AtariDQN::forward(const Tensor& x) {
  return network(x.to(network.at<nn::Conv2d>(0).weight->dtype()) / 255.0);
}
KILN_MODULE_DEFINED(AtariDQN, network)

}  // namespace kiln::models
