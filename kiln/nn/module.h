// Module: the base of every layer and model, and KILN_MODULE, which names a module's parts.
//
//   struct Net : kiln::nn::Module {
//     kiln::nn::Conv2d conv{1, 32, 3};
//     kiln::nn::Linear fc{32 * 26 * 26, 10};
//     KILN_MODULE(Net, conv, fc)
//
//     kiln::Tensor forward(kiln::Tensor x) { return fc(relu(conv(x)).flatten(1)); }
//   };
//   Net net;
//   kiln::Tensor logits = net(images);
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "kiln/nn/member_visitor.h"
#include "kiln/nn/module_hooks.h"
#include "kiln/nn/state_dict.h"

namespace kiln::nn {

class Record;
class Recorder;

namespace detail {
class ModuleRegistry;
[[noreturn]] void throw_cannot_clone(const Module& module, const char* why);
}  // namespace detail

// A copy of a module is an independent model: its parameters and buffers hold clones of the values
// (a lazy parameter stays lazy), and so do those of its parts. Parts held by std::shared_ptr stay
// shared by a plain copy; clone() copies them too, and keeps tied what is tied inside the module.
class Module {
 public:
  virtual ~Module();

  // ---- Written by KILN_MODULE

  // "Net".
  virtual std::string type_name() const = 0;
  // Shows each named member to the visitor.
  virtual void visit_members(MemberVisitor& visitor);
  // And then the parts registered at run time.
  void visit_parts(MemberVisitor& visitor);
  std::unique_ptr<Module> clone() const;

  // What stands between the parentheses when the module prints: "in_features=2, out_features=2".
  virtual std::string extra_repr() const { return ""; }

  // ---- Parameters and buffers

  // Names are paths ("layers.0.weight"); each module's own parameters come before those of
  // its parts. A tensor that occurs twice counts once, unless remove_duplicate is false. Lazy
  // parameters are initialized, in this order.
  std::vector<Tensor> parameters(bool recurse = true) const;
  std::vector<std::pair<std::string, Tensor>> named_parameters(const std::string& prefix = "",
                                                               bool recurse = true,
                                                               bool remove_duplicate = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  std::vector<std::pair<std::string, Tensor>> named_buffers(const std::string& prefix = "",
                                                            bool recurse = true,
                                                            bool remove_duplicate = true) const;
  // Calls f(name, parameter) for every parameter of the tree. Initializes nothing.
  void for_each_parameter(const std::function<void(const std::string&, Param<Tensor>&)>& f);
  // Initializes every lazy parameter, in the order of parameters(): what random numbers a model
  // starts from then depends on the seed and not on which layer is used first. parameters(),
  // state_dict() and so every optimizer do it.
  Module& materialize();
  // Elements of all parameters. Initializes nothing.
  int64_t num_params() const;

  // ---- Modules

  // Immediate parts, and all modules of the tree, this one first. A module that occurs twice is
  // listed once.
  std::vector<Module*> children();
  std::vector<std::pair<std::string, Module*>> named_children();
  std::vector<Module*> modules();
  std::vector<std::pair<std::string, Module*>> named_modules(const std::string& prefix = "",
                                                             bool remove_duplicate = true);
  // fn(module) for every module below this one, parts before their owner, then for this one.
  Module& apply(const std::function<void(Module&)>& fn);
  // This module as an M, or null: if (auto* linear = module.as<Linear>()) ...
  template <class M>
  M* as() {
    return dynamic_cast<M*>(this);
  }

  // ---- State of training

  Module& train(bool mode = true);
  Module& eval() { return train(false); }
  bool is_training() const { return training_; }
  Module& requires_grad_(bool requires_grad = true);
  void zero_grad(bool set_to_none = true);

  // Casts the floating point parameters and buffers (DTypeError for a dtype that is not floating
  // point); moves all of them. The tensors become other objects: make the optimizer afterwards.
  Module& to(DType dtype);
  Module& to(Device device);
  Module& to(Device device, DType dtype);

  // ---- State dict

  // Parameters and persistent buffers, detached, sharing memory with the module. A parameter
  // with a save mapper is represented by what the mapper makes of it.
  StateDict state_dict(const std::string& prefix = "") const;
  // Copies the tensors into the module's own, converting dtype and device; a lazy parameter takes
  // the values without running its initializer. Changes nothing and throws one ValueError that
  // lists all that is wrong when a shape does not match or, with `strict`, when keys are missing or
  // unexpected. Otherwise returns those keys.
  IncompatibleKeys load_state_dict(const StateDict& state_dict, bool strict = true);

  // ---- Records (kiln/nn/record.h)

  // What a state dict holds, with the parameters' ids. Initializes lazy parameters.
  Record into_record() const;
  // Takes values and ids over, through the load mappers; a lazy parameter takes them without
  // running its initializer. As strict as load_state_dict, with the same errors.
  Module& load_record(const Record& record);
  // A record in a file (kiln/io/recorder.h). The recorder adds its extension when the path lacks
  // it. load_file moves this module to `device` when there is one.
  void save_file(const std::string& path, const Recorder& recorder) const;
  Module& load_file(const std::string& path, const Recorder& recorder,
                    std::optional<Device> device = {});

  // ---- Parts registered at run time

  // For parts that are not known when the class is written. A name must be non-empty,
  // without dots, and not that of another part (ValueError); the same kind of part under the same
  // name is replaced. The references are to what the module holds: a copy of the module holds parts
  // of its own.
  template <class M>
    requires std::is_base_of_v<Module, M>
  M& register_module(const std::string& name, M module) {
    return register_module(name, std::make_shared<M>(std::move(module)));
  }
  template <class M>
    requires std::is_base_of_v<Module, M>
  M& register_module(const std::string& name, std::shared_ptr<M> module) {
    M* const part = module.get();
    add_module(name, std::move(module));  // throws when there is none
    return *part;
  }
  Param<Tensor>& register_parameter(const std::string& name, Param<Tensor> param);
  // The tensor must be a leaf (ValueError); the parameter shares its memory.
  Param<Tensor>& register_parameter(const std::string& name, const Tensor& value);
  Buffer& register_buffer(const std::string& name, Tensor value, bool persistent = true);

  // ---- Hooks

  HookHandle register_forward_pre_hook(ForwardPreHook hook);
  HookHandle register_forward_hook(ForwardHook hook);

  // Whether equal neighbours print as one line, "(0-3): 4 x Linear(...)".
  virtual bool folds_equal_children() const { return false; }

 protected:
  Module();
  Module(const Module& other);
  Module(Module&& other) noexcept;
  Module& operator=(const Module& other);
  Module& operator=(Module&& other) noexcept;

  virtual std::unique_ptr<Module> clone_module() const = 0;
  bool has_forward_hooks() const { return hooks_ != nullptr; }

  std::shared_ptr<const detail::ModuleHooks> hooks_;  // null without hooks

 private:
  void add_module(const std::string& name, std::shared_ptr<Module> module);
  detail::ModuleRegistry& registry(const std::string& name, const char* kind);

  std::unique_ptr<detail::ModuleRegistry> registry_;  // null without such parts
  bool training_ = true;
};

// PyTorch's layout: one line, or one indented line for each part.
std::string to_string(const Module& module);
std::ostream& operator<<(std::ostream& out, const Module& module);

namespace detail {

// Makes the copy independent where copying alone does not: shared parts are copied, tied parameters
// tied again.
void untangle_clone(const Module& original, Module& copy);

template <class M>
std::unique_ptr<Module> clone_as(const M& module) {
  if (typeid(module) != typeid(M)) {
    throw_cannot_clone(module, "its class derives from a module and has no KILN_MODULE_DERIVED");
  }
  if constexpr (std::is_copy_constructible_v<M>) {
    auto copy = std::make_unique<M>(module);
    untangle_clone(module, *copy);
    return copy;
  } else {
    throw_cannot_clone(module, "it has no copy constructor");
  }
}

}  // namespace detail
}  // namespace kiln::nn

// KILN_MODULE(Net, part, ...) goes into the body of struct Net : Module, anywhere; what follows it
// is public. (The language forbids it in a class that is local to a function.) It names the members
// that belong to the module's state: Param<Tensor>, Buffer, modules, and std::vector, array, tuple,
// pair, optional, unique_ptr and shared_ptr of them. There may be none. Names in state dicts are
// the members' names.
//
// It also writes operator(): net(args...) is net.forward(args...) between the forward hooks, and
// costs a test of one pointer when there are none.
//
// A class that derives from another module instead of Module uses KILN_MODULE_DERIVED(Net, Base,
// part, ...), which adds to the parts of Base. (A class with a std::vector of std::unique_ptr among
// its members must delete its copy constructor by hand: the language does not see that it has
// none.)
#define KILN_MODULE(Name, ...) \
  KILN_MODULE_DERIVED(Name, ::kiln::nn::Module __VA_OPT__(, ) __VA_ARGS__)

#define KILN_MODULE_DERIVED(Name, Base, ...)                                                 \
 public:                                                                                     \
  void visit_members(::kiln::nn::MemberVisitor& kiln_visitor) override {                     \
    static_assert(std::is_base_of_v<::kiln::nn::Module, Name>,                               \
                  "KILN_MODULE: the class must derive from kiln::nn::Module");               \
    static_assert(std::is_same_v<std::remove_pointer_t<decltype(this)>, Name>,               \
                  "KILN_MODULE: its first argument must be the class that it stands in");    \
    Base::visit_members(kiln_visitor);                                                       \
    ::kiln::nn::detail::visit_fields(kiln_visitor, #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__); \
  }                                                                                          \
  KILN_MODULE_WITHOUT_VISIT(Name)

// All of KILN_MODULE but visit_members, for a class that writes its own.
#define KILN_MODULE_WITHOUT_VISIT(Name)                                           \
 public:                                                                          \
  std::string type_name() const override { return #Name; }                        \
                                                                                  \
  template <class... KilnArgs, class KilnSelf = Name>                             \
  decltype(auto) operator()(KilnArgs&&... kiln_args) {                            \
    return kiln_call<KilnSelf>(*this, std::forward<KilnArgs>(kiln_args)...);      \
  }                                                                               \
  template <class... KilnArgs, class KilnSelf = const Name>                       \
  decltype(auto) operator()(KilnArgs&&... kiln_args) const {                      \
    return kiln_call<KilnSelf>(*this, std::forward<KilnArgs>(kiln_args)...);      \
  }                                                                               \
                                                                                  \
  std::unique_ptr<Name> clone() const {                                           \
    return std::unique_ptr<Name>(static_cast<Name*>(clone_module().release()));   \
  }                                                                               \
                                                                                  \
 protected:                                                                       \
  std::unique_ptr<::kiln::nn::Module> clone_module() const override {             \
    return ::kiln::nn::detail::clone_as<Name>(*this);                             \
  }                                                                               \
                                                                                  \
 private:                                                                         \
  template <class KilnSelf, class... KilnArgs>                                    \
  static decltype(auto) kiln_call(KilnSelf& kiln_self, KilnArgs&&... kiln_args) { \
    if (!kiln_self.has_forward_hooks()) [[likely]] {                              \
      return kiln_self.forward(std::forward<KilnArgs>(kiln_args)...);             \
    }                                                                             \
    return ::kiln::nn::detail::call_with_hooks(                                   \
        const_cast<std::remove_const_t<KilnSelf>&>(kiln_self), kiln_self.hooks_,  \
        [&kiln_self](auto&&... held) -> decltype(auto) {                          \
          return kiln_self.forward(std::forward<decltype(held)>(held)...);        \
        },                                                                        \
        std::forward<KilnArgs>(kiln_args)...);                                    \
  }                                                                               \
                                                                                  \
 public:
