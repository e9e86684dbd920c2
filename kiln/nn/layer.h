// Layer: the base of modules that a configuration describes.
//
// Note [Layers in two languages]
// A layer is written once, here: its configuration (names, defaults and meanings of its options),
// its initial values, its checks, its arithmetic, how it prints and which state it has. A row in
// kiln/nn/layers.def names the class; the Python class of the same name is made from that row. A
// Python module keeps its options and tensors as attributes of its own, which a user may set at any
// time. Before it computes, they are put into a C++ layer: config_ and the parts. So a layer reads
// its options from config_ whenever it uses them, and keeps nothing that it worked out from them.
#pragma once

#include <utility>

#include "kiln/core/config.h"
#include "kiln/nn/module.h"

namespace kiln::nn {

namespace detail {
struct LayerAccess;
}

// class Linear : public Layer<LinearConfig>. A constructor Linear(LinearConfig, ParamOptions) (or
// without ParamOptions where there are no parameters) makes the layer. Throws ValueError, which
// names them, when required options were not set.
template <class ConfigType>
class Layer : public Module {
 public:
  using Config = ConfigType;
  const Config& config() const { return config_; }

 protected:
  explicit Layer(Config config) : config_(std::move(config)) {
    kiln::detail::check_required(config_);
  }

  Config config_;

 private:
  friend struct detail::LayerAccess;
};

namespace detail {

// For who keeps a layer's options elsewhere: sets them without the constructor's checks.
struct LayerAccess {
  template <class Config>
  static Config& config_of(Module& layer) {
    return static_cast<Layer<Config>&>(layer).config_;
  }
};

}  // namespace detail
}  // namespace kiln::nn
