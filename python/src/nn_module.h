// Modules written in Python, as C++ sees them.
//
// Note [Python modules]
// A Python module keeps its parts in dicts of its own (_parameters, _buffers, _modules), which its
// class's methods and the user read and write. PyModule is its C++ side: it shows these dicts to
// visitors, so that whatever C++ does to modules (files, records, counting, quantization, ...)
// works on it, and it holds the hooks of calls, so that a Python module is called through the same
// mechanism as any other. The Python object owns it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "binding.h"

namespace kiln::python {

class PyModule final : public nn::Module {
 public:
  explicit PyModule(PyObject* self) : self_(self) {}

  // Borrowed. For use under the interpreter's lock.
  nb::handle self() const { return self_; }

  const nn::detail::ModuleClass& KILN_MODULE_is_missing_in_this_class() const override;
  std::string type_name() const override;
  void visit_members(nn::MemberVisitor& visitor) override;
  std::string extra_repr() const override;
  Tensor call_with_tensor(Tensor x) override;
  // Brings both sides to the same tensors. Visits begin with it; who changed a tree from C++ ends
  // with sync_tree().
  void sync();

 protected:
  std::unique_ptr<nn::Module> clone_module() const override;

 private:
  // What C++ sees of a parameter or buffer, with the tensor that both sides had last: whoever has
  // another one by now has changed it.
  template <class T>
  struct Mirror {
    T value;
    Tensor last;
  };

  void sync_parameter(const std::string& name, nb::handle value);
  void sync_param(nb::dict& parameters, const std::string& name, nb::handle value,
                  nn::Param<Tensor>& param);
  // The kiln.nn.Param that stands behind a name, or null.
  nn::Param<Tensor>* param_behind(const std::string& name) const;
  void sync_buffer(nb::dict& buffers, const std::string& name, nb::handle value, bool persistent);

  PyObject* self_;
  std::map<std::string, Mirror<nn::Param<Tensor>>> params_;
  std::map<std::string, Mirror<nn::Buffer>> buffers_;
};

// sync() for every Python module of the tree.
void sync_tree(nn::Module& root);
// Whether an object is a kiln.nn.Module.
bool is_module(PyObject* object) noexcept;
// The C++ side of a module, made when first asked for; null when it is no module.
PyModule* module_pointer(PyObject* object);
// The same, for an argument. Throws TypeError naming `op`.
PyModule& module_arg(const char* op, nb::handle object);
// A module that stays as long as somebody in C++ holds it.
std::shared_ptr<nn::Module> shared_module(nb::handle object);

// An argument or result of a call, whose tensors hooks may replace: the object itself is never
// written to.
class PyValue {
 public:
  explicit PyValue(nb::object object);
  // The object, or one like it with the replaced tensors.
  nb::object get();

  bool is_tensor() const { return kind_ == Kind::tensor; }
  bool is_collection() const { return kind_ == Kind::collection; }
  std::vector<Tensor>& tensors() { return tensors_; }

 private:
  enum class Kind { tensor, collection, other };

  nb::object object_;
  Kind kind_ = Kind::other;
  std::vector<Tensor> tensors_;  // one, or one for each element (undefined where it is none)
};

// kiln.nn.Parameter over a tensor: the object that stands for it already, if that is one.
nb::object as_parameter(const Tensor& x);

// The recorder in a kiln.record.Recorder. Throws TypeError for anything else.
const nn::Recorder& recorder_of(nb::handle object);

void bind_param(nb::module_& m);
void bind_param_records(nb::module_& m);

// What a module that is a layer of C++ keeps on its C++ side (nn_layer_use.h); it frees it.
struct LayerState;
struct FreeLayerState {
  void operator()(LayerState* state) const noexcept;
};
using LayerStatePointer = std::unique_ptr<LayerState, FreeLayerState>;
// Its place in a module, which `object` must be.
LayerStatePointer& layer_state(PyObject* object) noexcept;
void bind_layers(nb::module_& m);
void bind_packed_sequences(nb::module_& m);

// A module of C++ as a _C.CppHandle, and back. Throws TypeError for another object.
nb::object cpp_handle(std::shared_ptr<nn::Module> module);
nn::Module& module_of_handle(nb::handle handle);

// Calls forward between the hooks.
nb::object call_with_hooks(nb::handle self, const nb::tuple& args, const nb::dict& kwargs);

}  // namespace kiln::python

namespace kiln::nn {

template <>
struct HookTraits<kiln::python::PyValue> {
  static Tensor* tensor(kiln::python::PyValue& v) {
    return v.is_tensor() ? &v.tensors()[0] : nullptr;
  }
  static void elements(kiln::python::PyValue& v, std::vector<Tensor*>& out) {
    if (!v.is_tensor() && !v.is_collection()) out.push_back(nullptr);
    for (Tensor& x : v.tensors()) out.push_back(x.defined() ? &x : nullptr);
  }
};

}  // namespace kiln::nn
