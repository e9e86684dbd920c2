// A Python module's C++ layers.
//
// Note [A layer's two sides]
// The Python module has the truth: options are attributes of it, tensors are in its dicts. Its C++
// side keeps layers of the C++ class that wait for a call. A call takes one, brings its options up
// to date, lends it the tensors and takes them back. So nothing can be out of step, no tensor lives
// longer than its module, and two threads that call one module have a layer each. An option that is
// the same object as at the last call, and cannot change, is not read again.
#pragma once

#include "nn_layer_class.h"

namespace kiln::python {

namespace layers {

// A parameter or buffer of a layer.
struct Slot {
  PyObject* name;  // interned, never freed
  nn::Param<Tensor>* param;
  nn::Buffer* buffer;

  void lend(const Tensor& x) const {
    if (param != nullptr) {
      param->replace(x);
    } else {
      *buffer = x;
    }
  }
  void take_back() const { lend(Tensor()); }
  const Tensor& get() const { return param != nullptr ? param->get() : buffer->get(); }
};

// A layer that waits for calls.
struct Box {
  Box(std::unique_ptr<nn::Module> made, size_t options);
  void take_back() const {
    for (const Slot& slot : slots) slot.take_back();
  }

  std::unique_ptr<nn::Module> layer;
  std::vector<Slot> slots;
  std::vector<nb::object> seen;  // of each option, the value that the layer has
  bool training = true;
};

}  // namespace layers

struct LayerState {
  explicit LayerState(layers::LayerClass* layer_class) : of(layer_class) {}

  layers::LayerClass* of;
  // The module's class when somebody last looked whether it has an attribute of an option's or
  // part's name, such as a property. Python counts the changes of a class.
  PyTypeObject* seen_type = nullptr;
  unsigned int seen_version = 0;
  bool shadows = false;
  std::vector<std::unique_ptr<layers::Box>> boxes;
  std::vector<layers::Box*> idle;
  LayerStatePointer next;  // of another class of layers that the module's class derives from
};

namespace layers {

// Names in a module's dict, interned.
struct LayerNames {
  PyObject* parameters = PyUnicode_InternFromString("_parameters");
  PyObject* buffers = PyUnicode_InternFromString("_buffers");
  PyObject* params = PyUnicode_InternFromString("_params");
  PyObject* hidden = PyUnicode_InternFromString("_non_persistent_buffers_set");
  PyObject* training = PyUnicode_InternFromString("training");
  PyObject* reset = PyUnicode_InternFromString("reset_parameters");
};
const LayerNames& layer_names();

nb::object dict_of(PyObject* self);
// Borrowed; null when there is none.
PyObject* item(PyObject* dict, PyObject* name);
nb::object attribute(PyObject* self, PyObject* name);

// A module's state as a layer of that class.
LayerState& state_of(PyObject* self, LayerClass& of);
Box& add_box(LayerState& state, std::unique_ptr<nn::Module> layer);

// A layer of the module's, up to date, for as long as this lives. Under the interpreter's lock.
class LayerInUse {
 public:
  LayerInUse(PyObject* self, LayerClass& of);
  ~LayerInUse() { give_back(); }
  LayerInUse(const LayerInUse&) = delete;
  LayerInUse& operator=(const LayerInUse&) = delete;

  nn::Module& layer() const { return *box_->layer; }
  int64_t numel() const { return numel_; }

 private:
  void give_back() {
    box_->take_back();
    state_.idle.push_back(box_);
  }

  LayerState& state_;
  Box* box_;
  int64_t numel_ = 0;
};

}  // namespace layers
}  // namespace kiln::python
