// Layers of C++ as Python classes: what is known of each class. See Note [Layers in two languages]
// in kiln/nn/layer.h; docs/writing-a-layer.md says how one is added.
#pragma once

#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

#include "nn_module.h"

namespace kiln::python {

// An option of a layer, or an argument of its forward.
struct LayerOption {
  std::string name;
  nb::object standard;     // its default; null when it has none
  std::string annotation;  // "int", for type checkers
  bool keyword_only = false;
};

// A class of layers. One object for each row of layers.def, made at import and never freed.
class LayerType {
 public:
  LayerType(const char* name, const char* home, const char* forward, const char* doc)
      : name_(name), home_(home), forward_(forward), doc_(doc) {}
  virtual ~LayerType() = default;

  const char* name() const { return name_; }
  const char* home() const { return home_; }  // PyTorch's file: "linear"
  const char* doc() const { return doc_; }
  const char* forward_text() const { return forward_; }  // "input, *, activation='none'"

  virtual std::vector<LayerOption> options() const = 0;
  virtual bool has_parameters() const = 0;  // takes device and dtype
  virtual bool takes_anything() const = 0;  // ignores the arguments of its constructor
  virtual int64_t state_version() const = 0;
  virtual bool has_method(std::string_view method) const = 0;

  // With a value for each option, in order.
  virtual std::unique_ptr<nn::Module> make(const std::vector<nb::object>& values,
                                           const nn::ParamOptions& options) const = 0;
  // One with the same options, which shares the tensors.
  virtual std::unique_ptr<nn::Module> copy(const nn::Module& layer) const = 0;
  virtual nb::object option(const nn::Module& layer, size_t index) const = 0;
  // Checks the type of the value and nothing else.
  virtual void set_option(nn::Module& layer, size_t index, nb::handle value) const = 0;
  // With a value for each argument. `numel`: elements of the largest parameter. A new reference.
  virtual PyObject* forward(nn::Module& layer, PyObject* const* args, int64_t numel) const = 0;
  // A method without arguments.
  virtual void call_method(nn::Module& layer, std::string_view method) const = 0;

 private:
  const char* name_;
  const char* home_;
  const char* forward_;
  const char* doc_;
};

// Every kLayerParts-th of them, in its place in the order of layers.def.
inline constexpr size_t kLayerParts = 6;
template <size_t part>
void make_layer_types(std::vector<std::unique_ptr<LayerType>>& out);
#define KILN_LAYER_PART(part) \
  template <>                 \
  void make_layer_types<part>(std::vector<std::unique_ptr<LayerType>> & out);
KILN_LAYER_PART(0)
KILN_LAYER_PART(1)
KILN_LAYER_PART(2)
KILN_LAYER_PART(3)
KILN_LAYER_PART(4)
KILN_LAYER_PART(5)
#undef KILN_LAYER_PART

}  // namespace kiln::python
