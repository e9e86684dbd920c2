// Modules written in C++, for trees of Python modules: what kiln.nn.CppModule stands on.
#include "nn_module.h"

namespace kiln::python {

namespace {

// A module of C++, kept by whatever owns it.
struct CppHandle {
  std::shared_ptr<nn::Module> module;
};

// A module's own parts.
class OwnParts final : public nn::MemberVisitor {
 public:
  void parameter(std::string_view name, nn::Param<Tensor>& value) override {
    parameters.emplace_back(path(name), value.defined() ? value.get() : Tensor());
  }
  void buffer(std::string_view name, nn::Buffer& value) override {
    buffers.emplace_back(path(name), &value);
  }
  void module(std::string_view name, nn::Module& value) override {
    children.emplace_back(path(name), &value);
  }
  void group(std::string_view name, nn::MemberGroup& elements) override {
    const std::string before = std::exchange(prefix_, path(name) + ".");
    elements.visit_members(*this);
    prefix_ = before;
  }

  std::vector<std::pair<std::string, Tensor>> parameters;
  std::vector<std::pair<std::string, nn::Buffer*>> buffers;
  std::vector<std::pair<std::string, nn::Module*>> children;

 private:
  std::string path(std::string_view name) const { return prefix_ + std::string(name); }

  std::string prefix_;
};

OwnParts parts_of(const CppHandle& handle) {
  OwnParts parts;
  handle.module->visit_parts(parts);
  return parts;
}

nb::object dict_of_parameters(const CppHandle& handle) {
  nb::dict out;
  for (const auto& [name, value] : parts_of(handle).parameters) {
    out[name.c_str()] = as_parameter(value);
  }
  return out;
}

nb::tuple dict_of_buffers(const CppHandle& handle) {
  nb::dict out;
  nb::set hidden;
  for (const auto& [name, buffer] : parts_of(handle).buffers) {
    out[name.c_str()] = buffer->get();
    if (!buffer->persistent()) hidden.add(name.c_str());
  }
  return nb::make_tuple(out, hidden);
}

nb::dict dict_of_children(const CppHandle& handle) {
  nb::dict out;
  for (const auto& [name, child] : parts_of(handle).children) {
    if (const auto* python = dynamic_cast<const PyModule*>(child)) {
      out[name.c_str()] = nb::borrow(python->self());
    } else {
      // Lives in its owner, which the pointer keeps.
      out[name.c_str()] = CppHandle{std::shared_ptr<nn::Module>(handle.module, child)};
    }
  }
  return out;
}

void set_buffer(const CppHandle& handle, const std::string& name, const OptionalTensor& value) {
  for (auto& [own, buffer] : parts_of(handle).buffers) {
    if (own != name) continue;
    *buffer = value.value;
    return;
  }
  throw_error<KeyError>("CppModule: no buffer of this name; got '", name, "'");
}

Tensor call(const CppHandle& handle, const Tensor& x) {
  Unlocked lock;
  return handle.module->call_with_tensor(x);
}

// Sequential(Linear, ReLU, ...) of C++: for tests, and for whoever wants one.
CppHandle sequential(const nb::list& modules) {
  auto out = std::make_shared<nn::Sequential>();
  for (nb::handle item : nb::tuple(modules)) {
    CppHandle part;
    if (try_value(item, part)) {
      out->push_back(nn::AnyModule(part.module));
    } else {
      module_arg("Sequential", item);
      out->push_back(nn::AnyModule(shared_module(item)));
    }
  }
  return {out};
}

}  // namespace

nb::object cpp_handle(std::shared_ptr<nn::Module> module) {
  return nb::cast(CppHandle{std::move(module)});
}

nn::Module& module_of_handle(nb::handle handle) {
  return *value_arg<CppHandle>("CppHandle", handle, "a CppHandle").module;
}

// C++ may have shown the tensor to Python as a plain one before.
nb::object as_parameter(const Tensor& x) {
  if (!x.defined()) return nb::none();
  if (auto* known = static_cast<PyObject*>(interop::foreign_object(x))) {
    if (nb::isinstance<PyParameter>(nb::handle(known))) return nb::borrow(known);
    interop::foreign_object(x) = nullptr;
  }
  return nb::steal(parameter_object(x));
}

void bind_cpp_modules(nb::module_& m) {
  nb::class_<CppHandle>(m, "CppHandle", "A module written in C++.")
      .def("type_name", [](const CppHandle& h) { return h.module->type_name(); })
      .def("extra_repr", [](const CppHandle& h) { return h.module->extra_repr(); })
      .def("state_version", [](const CppHandle& h) { return h.module->state_version(); })
      .def("parameters", &dict_of_parameters)
      .def("buffers", &dict_of_buffers)
      .def("children", &dict_of_children)
      .def("set_buffer", &set_buffer, "name"_a, nb::arg("value").none())
      .def("set_training", [](const CppHandle& h, bool mode) { h.module->train(mode); })
      .def("same", [](const CppHandle& a, const CppHandle& b) { return a.module == b.module; })
      .def("__call__", &call);
  m.def("_cpp_sequential", &sequential);
}

}  // namespace kiln::python
