// A Python module as C++ visits it.
#include "nn_module.h"

namespace kiln::python {

namespace {

nb::dict dict_of(nb::handle self, const char* name) {
  const auto dict = nb::cast<nb::dict>(nb::object(self.attr("__dict__")));
  if (!dict.contains(name)) return {};
  return nb::borrow<nb::dict>(dict[name]);
}

// A child of a Python module, for visitors that copy or replace shared modules.
class Child final : public nn::SharedModule {
 public:
  Child(nb::dict parts, std::string name) : parts_(std::move(parts)), name_(std::move(name)) {}
  std::shared_ptr<nn::Module> get() const override { return shared_module(parts_[name_.c_str()]); }
  void set(const std::shared_ptr<nn::Module>& module) override {
    const auto* python = dynamic_cast<const PyModule*>(module.get());
    if (python == nullptr) {
      throw_error<TypeError>("Module: a Python module cannot hold a module of C++; got ",
                             module->type_name());
    }
    parts_[name_.c_str()] = nb::borrow(python->self());
  }

 private:
  nb::dict parts_;
  std::string name_;
};

}  // namespace

std::string PyModule::type_name() const {
  Locked lock;
  return nb::cast<std::string>(self().type().attr("__name__"));
}

std::string PyModule::extra_repr() const {
  Locked lock;
  return nb::cast<std::string>(self().attr("extra_repr")());
}

Tensor PyModule::call_with_tensor(Tensor x) {
  Locked lock;
  sync();
  const nb::object result = self()(nb::cast(x));
  return tensor_arg("forward", result);
}

std::unique_ptr<nn::Module> PyModule::clone_module() const {
  throw_error<NotImplementedError>(
      "clone: a module written in Python is copied by copy.deepcopy; got ", type_name());
}

void PyModule::sync() {
  for (nb::handle item : nb::list(dict_of(self(), "_parameters").items())) {
    sync_parameter(nb::cast<std::string>(item[0]), nb::object(item[1]));
  }
  nb::dict buffers = dict_of(self(), "_buffers");
  if (nb::len(buffers) == 0) return;
  const auto hidden =
      nb::cast<nb::set>(nb::object(self().attr("__dict__")["_non_persistent_buffers_set"]));
  for (nb::handle item : nb::list(buffers.items())) {
    const auto name = nb::cast<std::string>(item[0]);
    sync_buffer(buffers, name, nb::object(item[1]), !hidden.contains(name.c_str()));
  }
}

void PyModule::sync_parameter(const std::string& name, nb::handle value) {
  auto& [param, last] = params_[name];
  if (value.is_none()) {
    param = {};
    last = {};
    return;
  }
  Tensor own = tensor_arg("module", value);
  if (!own.is_same(last) || !last.defined()) {  // Python has another parameter by now
    if (last.defined()) {
      param.replace(own);
    } else {
      param = nn::Param<Tensor>::initialized(nn::ParamId(), own);
    }
  } else if (const Tensor now = param.get(); !now.is_same(last)) {
    // C++ has; the Parameter object stays, and takes over what it is.
    const Tensor grad = now.grad();
    const bool wanted = now.requires_grad();
    own.requires_grad_(false);
    interop::set_data(own, now.detach());
    own.requires_grad_(wanted);
    if (wanted) own.set_grad(grad);
    param.replace(own);
  }
  last = own;
}

void PyModule::sync_buffer(nb::dict& buffers, const std::string& name, nb::handle value,
                           bool persistent) {
  auto& [buffer, last] = buffers_[name];
  const Tensor own = value.is_none() ? Tensor() : tensor_arg("module", value);
  if (!own.is_same(last)) {
    buffer = nn::Buffer(own, persistent);
  } else if (!buffer.get().is_same(last)) {
    buffers[name.c_str()] = nb::cast(buffer.get());
  }
  buffer.set_persistent(persistent);
  last = buffer.get();
}

void PyModule::visit_members(nn::MemberVisitor& visitor) {
  Locked lock;
  const nb::object alive = nb::borrow(self());
  sync();
  for (nb::handle item : nb::list(dict_of(alive, "_parameters").items())) {
    const auto name = nb::cast<std::string>(item[0]);
    visitor.parameter(name, params_[name].value);
  }
  for (nb::handle item : nb::list(dict_of(alive, "_buffers").items())) {
    const auto name = nb::cast<std::string>(item[0]);
    visitor.buffer(name, buffers_[name].value);
  }
  const nb::dict children = dict_of(alive, "_modules");
  for (nb::handle item : nb::list(children.items())) {
    const nb::object value = item[1];
    if (value.is_none()) continue;
    module_arg("visit", value);
    Child child(children, nb::cast<std::string>(item[0]));
    visitor.shared_module(nb::cast<std::string>(item[0]), child);
  }
}

void sync_tree(nn::Module& root) {
  for (nn::Module* module : root.modules()) {
    if (auto* python = dynamic_cast<PyModule*>(module)) python->sync();
  }
}

}  // namespace kiln::python
