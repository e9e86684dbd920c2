// A Python module as C++ visits it.
#include "nn_module.h"

namespace kiln::python {

namespace {

nb::dict dict_of(nb::handle self, const char* name) {
  const nb::object all = self.attr("__dict__");
  const nb::object parts = all.attr("get")(name);
  if (parts.is_none()) return {};
  if (!PyDict_Check(parts.ptr())) {
    throw nb::type_error(
        concat("Module: ", name, " is no dict; got ", name_of_type(parts)).c_str());
  }
  return nb::borrow<nb::dict>(parts);
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

const nn::detail::ModuleClass& PyModule::KILN_MODULE_is_missing_in_this_class() const {
  static const nn::detail::ModuleClass info = {
      "PyModule",
      typeid(PyModule),
      sizeof(PyModule),
      {},
      [](const nn::Module& x) { return static_cast<const PyModule&>(x).clone_module(); },
      [](nn::Module&, const nn::Module&) { return false; },
      [](nn::Module& x, Tensor input) { return x.call_with_tensor(std::move(input)); },
      [](const nn::Module&) -> const void* { return nullptr; }};
  return info;
}

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

nn::Param<Tensor>* PyModule::param_behind(const std::string& name) const {
  const nb::dict params = dict_of(self(), "_params");
  if (!params.contains(name.c_str())) return nullptr;
  return &nb::cast<nn::Param<Tensor>&>(nb::object(params[name.c_str()]));
}

// A kiln.nn.Param keeps id and mappers; once it has a value, the Parameter in the dict holds it.
void PyModule::sync_param(nb::dict& parameters, const std::string& name, nb::handle value,
                          nn::Param<Tensor>& param) {
  if (!value.is_none()) {
    const Tensor own = tensor_arg("module", value);
    if (!param.is_initialized() || !param.get().is_same(own)) param.replace(own);
  } else if (param.is_initialized()) {
    parameters[name.c_str()] = as_parameter(param.get());
  }
}

void PyModule::sync() {
  nb::dict parameters = dict_of(self(), "_parameters");
  for (nb::handle item : nb::list(parameters.items())) {
    const auto name = nb::cast<std::string>(item[0]);
    if (nn::Param<Tensor>* param = param_behind(name)) {
      sync_param(parameters, name, nb::object(item[1]), *param);
    } else {
      sync_parameter(name, nb::object(item[1]));
    }
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
    nn::Param<Tensor>* const param = param_behind(name);
    visitor.parameter(name, param != nullptr ? *param : params_[name].value);
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
