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

#include <any>
#include <atomic>
#include <concepts>
#include <functional>
#include <iosfwd>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "kiln/core/memory_format.h"
#include "kiln/nn/copy_session.h"
#include "kiln/nn/member_visitor.h"
#include "kiln/nn/module_class.h"
#include "kiln/nn/module_hooks.h"
#include "kiln/nn/part_mark.h"
#include "kiln/nn/positional.h"
#include "kiln/nn/registered.h"
#include "kiln/nn/state_dict.h"

namespace kiln {
struct CompileOptions;
}

namespace kiln::nn {

class CompiledCalls;
class ModuleMapper;
class ModuleVisitor;
class Record;
class Recorder;

namespace detail {
class ModuleRegistry;
class StateLoader;
class StateSaver;
class SubmoduleSetter;
struct HookTable;
struct UnnamedParts;
[[noreturn]] void throw_cannot_clone(const Module& module, const char* why);
[[noreturn]] void throw_null_module(const std::string& name);
[[noreturn]] void throw_no_tensor_call(const Module& module);
}  // namespace detail

// A copy of a module is an independent model: its parameters and buffers hold clones of the values
// (a lazy parameter stays lazy), and so do those of its parts; what is tied in the module is tied
// in the copy; its hooks are the same functions, in lists of its own. Parts held by std::shared_ptr
// stay shared by a plain copy; clone() copies them too.
class Module {
 public:
  virtual ~Module();

  // ---- Written by KILN_MODULE

  // A class that derives from Module says what it consists of in a line KILN_MODULE(..).
  virtual const detail::ModuleClass& KILN_MODULE_is_missing_in_this_class() const = 0;
  const detail::ModuleClass& module_class() const { return KILN_MODULE_is_missing_in_this_class(); }
  static constexpr bool kiln_derives_from_module = true;
  // "Net".
  virtual std::string type_name() const { return module_class().name; }
  // Shows each named member to the visitor.
  virtual void visit_members(MemberVisitor& visitor);
  // Shows members that are parts of nobody's model, on purpose.
  virtual void visit_unnamed(MemberVisitor&) {}
  // The named members, and then the parts registered at run time. The first visit of an object
  // throws RuntimeError when a part that lies in it is not named.
  void visit_parts(MemberVisitor& visitor);
  std::unique_ptr<Module> clone() const;
  // operator() for a module of unknown class. Throws NotImplementedError when its forward does not
  // take one Tensor and return one.
  virtual Tensor call_with_tensor(Tensor x);

  // What stands between the parentheses when the module prints: "in_features=2, out_features=2".
  // One line or several.
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
  std::vector<const Module*> children() const;
  std::vector<std::pair<std::string, const Module*>> named_children() const;
  std::vector<const Module*> modules() const;
  std::vector<std::pair<std::string, const Module*>> named_modules(
      const std::string& prefix = "", bool remove_duplicate = true) const;
  // The same without the modules in `memo` and what is below them; adds those that it lists.
  std::vector<std::pair<std::string, Module*>> named_modules(std::set<const Module*>& memo,
                                                             const std::string& prefix = "",
                                                             bool remove_duplicate = true);
  // fn(module) for every module below this one, parts before their owner, then for this one.
  Module& apply(const std::function<void(Module&)>& fn);
  // This module as an M, or null: if (auto* linear = module.as<Linear>()) ...
  template <class M>
  M* as() {
    return dynamic_cast<M*>(this);
  }

  // ---- Parts by path

  // "layers.0.fc"; the empty path is this module. Looks only at the modules on the path. Throws
  // AttributeError when a name does not exist, or is of another kind.
  Module& get_submodule(std::string_view target);
  Param<Tensor>& get_parameter(std::string_view target);
  Buffer& get_buffer(std::string_view target);
  // Puts the module in the place of another, or, unless `strict`, registers it under a new name in
  // an existing module. A member that holds its module by value takes a copy, of the same class
  // only (TypeError). Throws ValueError for an empty path or a null pointer, AttributeError when
  // the path leads nowhere or to something that is no module.
  void set_submodule(std::string_view target, std::shared_ptr<Module> module, bool strict = false);

  // ---- State of training

  Module& train(bool mode = true);
  Module& eval() { return train(false); }
  bool is_training() const { return training_; }
  Module& requires_grad_(bool requires_grad = true);
  void zero_grad(bool set_to_none = true);

  // ---- Moving and casting, in place
  //
  // The tensors stay the same objects, with other values: an optimizer that was made before goes on
  // training them. Gradients go along, and gradient requirements stay.

  // Casts the floating point parameters and buffers (TypeError for a dtype that is not floating
  // point); moves all of them. non_blocking is a wish that the host backends need not honour.
  Module& to(DType dtype, bool non_blocking = false);
  Module& to(Device device, bool non_blocking = false);
  Module& to(Device device, DType dtype, bool non_blocking = false);
  // To the device and, when that is floating point, the dtype of `like`.
  Module& to(const Tensor& like, bool non_blocking = false);
  // Parameters and buffers with 4 dims.
  Module& to(MemoryFormat format);
  // To the device without the values, which are then undefined.
  Module& to_empty(Device device, bool recurse = true);
  // Casts all parameters and buffers, integers too. Also by name: "float64", "torch.float64".
  // Parameters keep their gradient requirement where the dtype has gradients.
  Module& type(DType dtype);
  Module& type(std::string_view dtype);
  Module& half() { return to(DType::f16); }
  Module& bfloat16() { return to(DType::bf16); }
  Module& float_() { return to(DType::f32); }
  Module& double_() { return to(DType::f64); }
  Module& cpu() { return to(Device()); }
  // Throws DeviceError when no backend of that name is registered.
  Module& cuda(int index = 0);
  // Moves parameters and buffers into memory that processes forked afterwards share; see
  // Tensor::share_memory_. What is tied stays tied.
  Module& share_memory();

  // ---- Burn's view of a module: visited and mapped rather than asked

  // Shows every parameter of the tree, in order, initializing none.
  void visit(ModuleVisitor& visitor) const;
  // Puts what the mapper returns in the place of every parameter.
  Module& map(ModuleMapper& mapper);
  // The devices of all parameters and buffers, added to `devices` without duplicates.
  std::vector<Device> collect_devices(std::vector<Device> devices) const;
  std::vector<Device> devices() const { return collect_devices({}); }
  // Moves every parameter by an op that autodiff records: gradients flow back to the tensors from
  // before, and the module cannot be optimized any more. For that, fork() it.
  Module& to_device(Device device);
  // Moves every parameter and makes it a leaf of its own, with the same gradient requirement.
  Module& fork(Device device);
  // No parameter requires a gradient any more.
  Module& no_grad() { return requires_grad_(false); }

  // ---- State dict

  // Parameters and persistent buffers, detached, sharing memory with the module; with keep_vars the
  // module's own tensors. A parameter with a save mapper is represented by what the mapper makes of
  // it.
  StateDict state_dict(const std::string& prefix = "", bool keep_vars = false) const;
  // Adds to (or replaces in) `destination`, and returns it.
  StateDict& state_dict(StateDict& destination, const std::string& prefix = "",
                        bool keep_vars = false) const;
  // Copies the tensors into the module's own, converting dtype and device; a lazy parameter takes
  // the values without running its initializer. With `assign` the module takes the tensors
  // themselves, with their dtype and device, and keeps its gradient requirements. Throws one
  // RuntimeError that lists all that is wrong when a shape does not match or, with `strict`, when
  // keys are missing or unexpected; nothing has changed then (unless load_state_dict post-hooks had
  // to run first). Otherwise returns those keys.
  IncompatibleKeys load_state_dict(const StateDict& state_dict, bool strict = true,
                                   bool assign = false);
  // State beside parameters and buffers. A class that overrides these two has an entry
  // "_extra_state" in its state dict: a Tensor, or anything else for programs that do not save to
  // files. Not overridden, they throw RuntimeError.
  virtual std::any get_extra_state() const;
  virtual void set_extra_state(const std::any& state);
  // Noted in the state dict's metadata.
  virtual int64_t state_version() const { return 1; }
  // Whether a state dict that says `saved` of this module may lack its parameter or buffer `name`,
  // which then stays as it is: for what older versions did not have.
  virtual bool may_lack(std::string_view name, const StateMetadata& saved) const;

  // ---- Records (kiln/nn/record.h)

  // What a state dict holds, with the parameters' ids; extra state that is a bool, an int64_t, a
  // double or a std::string is among the record's values (ValueError for another type).
  // Initializes lazy parameters.
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
  // without dots, and not that of another part (KeyError); the same kind of part under the same
  // name is replaced. What is returned leads to the part that the module holds (a copy of the
  // module holds parts of its own):
  //   Linear& fc = register_module("fc", Linear{2, 2});
  template <class M>
    requires std::is_base_of_v<Module, M>
  Registered<M> register_module(const std::string& name, M module) {
    return register_module(name, std::make_shared<M>(std::move(module)));
  }
  template <class M>
    requires std::is_base_of_v<Module, M>
  Registered<M> register_module(const std::string& name, std::shared_ptr<M> module) {
    if (module == nullptr) detail::throw_null_module(name);
    add_module(name, module);
    return Registered<M>(std::move(module));
  }
  // Null: PyTorch's None, a name without a module.
  void add_module(const std::string& name, std::shared_ptr<Module> module);
  Registered<Param<Tensor>> register_parameter(const std::string& name, Param<Tensor> param);
  // The tensor must be a leaf (ValueError); the parameter shares its memory.
  Registered<Param<Tensor>> register_parameter(const std::string& name, const Tensor& value);
  Registered<Buffer> register_buffer(const std::string& name, Tensor value, bool persistent = true);

  // ---- Hooks (see module_hooks.h)

  HookHandle register_forward_pre_hook(ForwardPreHook hook, bool prepend = false);
  HookHandle register_forward_hook(ForwardHook hook, const ForwardHookOptions& options = {});
  // Called in a backward pass when the gradients of the module's arguments are computed; when none
  // of them requires one, when those of its output are; never when that requires none. While it is
  // there, forward gets views of its tensor arguments and the caller one of each result, which must
  // not be written in place (AutodiffError).
  HookHandle register_full_backward_hook(BackwardHook hook, bool prepend = false);
  HookHandle register_full_backward_pre_hook(BackwardPreHook hook, bool prepend = false);
  // Deprecated: sees the gradients of the operands and results of the last op of the module only.
  // Throws RuntimeError on a module with full backward hooks, and these on one with this kind.
  HookHandle register_backward_hook(BackwardHook hook);
  HookHandle register_state_dict_pre_hook(StateDictPreHook hook);
  HookHandle register_state_dict_post_hook(StateDictHook hook);
  HookHandle register_load_state_dict_pre_hook(LoadStateDictPreHook hook);
  HookHandle register_load_state_dict_post_hook(LoadStateDictPostHook hook);

  // ---- Compiling (kiln/compile/module_compile.h, docs/graphs.md)

  // Calls of this module are captured and replayed from now on, as kiln::compile does it: for a
  // forward of tensors that gives a tensor, or a pair, tuple, vector or array of tensors; calls of
  // any other are computed as before. Hooks run as before, around the replay. State dicts,
  // parameters and parts stay as they are. A copy of the module is not compiled.
  Module& compile();
  Module& compile(const CompileOptions& options);
  // What was captured; null before compile().
  CompiledCalls* compiled() const;

  // Whether a call has hooks to run, or a replacement of forward.
  bool has_forward_hooks() const {
    const detail::HookCount* own = hooks_.load(std::memory_order_relaxed);
    return (own != nullptr && own->value.load(std::memory_order_relaxed) != 0) ||
           detail::global_hook_count.load(std::memory_order_relaxed) != 0;
  }

  // Whether equal neighbours print as one line, "(0-3): 4 x Linear(...)".
  virtual bool folds_equal_children() const { return false; }

 protected:
  Module();
  Module(const Module& other);
  Module(Module&& other) noexcept;
  Module& operator=(const Module& other);
  Module& operator=(Module&& other) noexcept;

  virtual std::unique_ptr<Module> clone_module() const { return module_class().clone(*this); }
  // A copy that shares the values, without gradients, in eval mode; and the way back.
  std::unique_ptr<Module> valid_module() const;
  std::unique_ptr<Module> training_module() const;

 private:
  friend struct detail::UnnamedParts;
  friend class detail::StateSaver;
  friend class detail::StateLoader;
  friend class detail::SubmoduleSetter;
  friend struct detail::HookTable;

  // Whether the class overrides get_extra_state and set_extra_state.
  detail::ExtraState extra_state() const { return module_class().extra; }
  // Takes a copy of a module of the same class; false when it is of another.
  bool assign_module(const Module& other) { return module_class().assign(*this, other); }
  void check_parts() const;
  detail::ModuleRegistry& registry(const std::string& name, const char* kind);
  detail::HookTable& hook_table() const;
  void drop_hooks() noexcept;

  mutable std::atomic<detail::HookCount*> hooks_{nullptr};  // a HookTable, once it is needed
  std::unique_ptr<detail::ModuleRegistry> registry_;        // null without such parts
  detail::PartMark<detail::PartKind::module> mark_;
  mutable std::atomic<const detail::ModuleClass*> checked_as_{nullptr};  // by check_parts()
  bool training_ = true;
};

// PyTorch's layout: one line, or one indented line for each part.
std::string to_string(const Module& module);
std::ostream& operator<<(std::ostream& out, const Module& module);

namespace detail {

// Copies what copying alone leaves shared: parts that are held by std::shared_ptr.
void untangle_clone(const Module& original, Module& copy);

template <class M>
std::unique_ptr<Module> clone_as(const Module& original) {
  if constexpr (std::is_base_of_v<Module, M>) {
    const auto& module = static_cast<const M&>(original);
    if (typeid(module) != typeid(M)) {
      throw_cannot_clone(module, "its class derives from a module and has no KILN_MODULE_DERIVED");
    }
    if constexpr (std::is_copy_constructible_v<M>) {
      const CopySession session;
      auto copy = std::make_unique<M>(module);
      untangle_clone(module, *copy);
      return copy;
    } else {
      throw_cannot_clone(module, "it has no copy constructor");
    }
  } else {
    return nullptr;
  }
}

template <class M>
bool assign_as(Module& module, const Module& other) {
  if constexpr (std::is_base_of_v<Module, M> && std::is_copy_assignable_v<M>) {
    if (typeid(module) != typeid(M) || typeid(other) != typeid(M)) return false;
    static_cast<M&>(module) = static_cast<const M&>(other);
    return true;
  } else {
    return false;
  }
}

template <class M>
Tensor call_as(Module& module, Tensor x) {
  if constexpr (std::is_base_of_v<Module, M>) {
    auto& callee = static_cast<M&>(module);
    if constexpr (requires {
                    { callee.forward(std::move(x)) } -> std::convertible_to<Tensor>;
                  }) {
      return callee(std::move(x));
    }
  }
  throw_no_tensor_call(module);
}

template <class M>
const void* end_of_parts_of(const Module& module) {
  if constexpr (std::is_base_of_v<Module, M>) {
    return &static_cast<const M&>(module).kiln_copy_end_;
  } else {
    return nullptr;
  }
}

// forward between the hooks.
template <class M, class... Args>
decltype(auto) call(M& module, Args&&... args) {
  constexpr bool fits = requires { module.forward(std::forward<Args>(args)...); };
  static_assert(fits,
                "a module is called as its forward is: the call does not fit the class's forward, "
                "or there is no public one; the next message says why");
  if constexpr (!fits) {
    return module.forward(std::forward<Args>(args)...);
  } else {
    if (!module.has_forward_hooks()) [[likely]] {
      return module.forward(std::forward<Args>(args)...);
    }
    using Result = decltype(module.forward(std::forward<Args>(args)...));
    return call_with_hooks(
        const_cast<std::remove_const_t<M>&>(module),
        [&module](auto&&... held) -> decltype(auto) {
          return module.forward(std::forward<decltype(held)>(held)...);
        },
        tensor_forward<M, Result, Args...>(), std::forward<Args>(args)...);
  }
}

template <class G, class S>
constexpr ExtraState extra_state_of(std::any (G::*)() const, void (S::*)(const std::any&)) {
  return {!std::is_same_v<G, Module>, !std::is_same_v<S, Module>};
}

template <class M>
ModuleClass module_class_of(const char* name, ExtraState extra) {
  return {name,        typeid(M),    sizeof(M),  extra,
          clone_as<M>, assign_as<M>, call_as<M>, end_of_parts_of<M>};
}

template <class Base, class M, class... T>
void visit_class(M& module, MemberVisitor& visitor, std::string_view names, T&... members) {
  if constexpr (std::is_base_of_v<Base, M>) {
    module.Base::visit_members(visitor);
    visit_fields(visitor, names, members...);
  }
}

}  // namespace detail
}  // namespace kiln::nn

// KILN_MODULE(Net, part, ...) goes into the body of struct Net : Module, behind the parts that it
// names; what follows it is public. (The language forbids it in a class that is local to a
// function.) It names the members that belong to the module's state: Param<Tensor>, Buffer,
// modules, and std::vector, array, tuple, pair, optional, unique_ptr and shared_ptr of them. There
// may be none. Names in state dicts are the members' names.
//
// It also writes
//   operator()    net(args...) is net.forward(args...) between the hooks; it costs a test of one
//                 pointer and one number when there are none
//   clone()       an independent copy, as std::unique_ptr<Net>
//   valid()       Burn's: a copy for inference that shares the values, requires no gradients and is
//                 in eval mode
//   from_valid()  a copy of such a one for training: every parameter requires a gradient if it did
//                 before valid(); it shares the values too
//
// A class that derives from another module instead of Module uses KILN_MODULE_DERIVED(Net, Base,
// part, ...), which adds to the parts of Base. (A class with a std::vector of std::unique_ptr among
// its members must delete its copy constructor by hand: the language does not see that it has
// none.)
#define KILN_MODULE(Name, ...)                                               \
  static_assert(kiln_derives_from_module,                                    \
                "KILN_MODULE: the class must derive from kiln::nn::Module"); \
  KILN_MODULE_PARTS(Name, ::kiln::nn::Module __VA_OPT__(, ) __VA_ARGS__)

#define KILN_MODULE_DERIVED(Name, Base, ...)                                    \
  static_assert(std::is_base_of_v<::kiln::nn::Module, Base>,                    \
                "KILN_MODULE_DERIVED: its second argument must be the class's " \
                "base, which derives from kiln::nn::Module");                   \
  KILN_MODULE_PARTS(Name, Base __VA_OPT__(, ) __VA_ARGS__)

#define KILN_MODULE_PARTS(Name, Base, ...)                                                \
 public:                                                                                  \
  void visit_members(::kiln::nn::MemberVisitor& kiln_visitor) override {                  \
    static_assert(std::is_same_v<std::remove_pointer_t<decltype(this)>, Name>,            \
                  "KILN_MODULE: its first argument must be the class that it stands in"); \
    static_assert(::kiln::nn::detail::keeps_base_parts<Name, Base>,                       \
                  "KILN_MODULE: a base of this class has parts of its own, which would "  \
                  "be neither trained nor saved; write KILN_MODULE_DERIVED(" #Name        \
                  ", its base, its parts)");                                              \
    ::kiln::nn::detail::visit_class<Base>(*this, kiln_visitor,                            \
                                          #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__);       \
  }                                                                                       \
  KILN_MODULE_WITHOUT_VISIT(Name)

// What a use of KILN_MODULE costs to compile: 30 ms in each file that sees the class. The layers of
// Kiln, of which a program uses few, write KILN_MODULE_DECLARED(Name) in the header, which costs
// next to nothing, and KILN_MODULE_DEFINED(Name, part, ...) in the source.
#define KILN_MODULE_DECLARED(Name)                                      \
 public:                                                                \
  void visit_members(::kiln::nn::MemberVisitor& kiln_visitor) override; \
  KILN_MODULE_DECLARED_WITHOUT_VISIT(Name)

#define KILN_MODULE_DECLARED_WITHOUT_VISIT(Name) \
 public:                                         \
  KILN_POSITIONAL(Name)                          \
  KILN_MODULE_DECLARED_WITHOUT_OPTIONS(Name)

// The same for a class without a configuration, which declares visit_members itself.
#define KILN_MODULE_DECLARED_WITHOUT_OPTIONS(Name)                                              \
 public:                                                                                        \
  [[maybe_unused]] friend ::kiln::nn::detail::NamedParts<Name> kiln_names_parts(const Name*) {  \
    return {};                                                                                  \
  }                                                                                             \
  static const ::kiln::nn::detail::ModuleClass& kiln_class();                                   \
  const ::kiln::nn::detail::ModuleClass& KILN_MODULE_is_missing_in_this_class() const override; \
  KILN_MODULE_CALLS(Name)                                                                       \
  std::unique_ptr<Name> clone() const;                                                          \
  std::unique_ptr<Name> valid() const;                                                          \
  std::unique_ptr<Name> from_valid() const;                                                     \
  ::kiln::nn::detail::CopyEnd<Name> kiln_copy_end_;

#define KILN_MODULE_DEFINED(Name, ...)                                                            \
  void Name::visit_members(::kiln::nn::MemberVisitor& kiln_visitor) {                             \
    ::kiln::nn::detail::visit_class<::kiln::nn::Module>(*this, kiln_visitor,                      \
                                                        #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__); \
  }                                                                                               \
  KILN_MODULE_DEFINED_WITHOUT_VISIT(Name)

// The same for a class that defines visit_members itself.
#define KILN_MODULE_DEFINED_WITHOUT_VISIT(Name)                                               \
  const ::kiln::nn::detail::ModuleClass& Name::kiln_class() {                                 \
    static const auto kiln_info = ::kiln::nn::detail::module_class_of<Name>(                  \
        #Name,                                                                                \
        ::kiln::nn::detail::extra_state_of(&Name::get_extra_state, &Name::set_extra_state));  \
    return kiln_info;                                                                         \
  }                                                                                           \
  const ::kiln::nn::detail::ModuleClass& Name::KILN_MODULE_is_missing_in_this_class() const { \
    return kiln_class();                                                                      \
  }                                                                                           \
  std::unique_ptr<Name> Name::clone() const {                                                 \
    return std::unique_ptr<Name>(static_cast<Name*>(clone_module().release()));               \
  }                                                                                           \
  std::unique_ptr<Name> Name::valid() const {                                                 \
    return std::unique_ptr<Name>(static_cast<Name*>(valid_module().release()));               \
  }                                                                                           \
  std::unique_ptr<Name> Name::from_valid() const {                                            \
    return std::unique_ptr<Name>(static_cast<Name*>(training_module().release()));            \
  }

// A call of the module is forward between the hooks.
#define KILN_MODULE_CALLS(Name)                                                             \
  template <class... KilnArgs, class KilnSelf = Name>                                       \
  decltype(auto) operator()(KilnArgs&&... kiln_args) {                                      \
    return ::kiln::nn::detail::call<KilnSelf>(*this, std::forward<KilnArgs>(kiln_args)...); \
  }                                                                                         \
  template <class... KilnArgs, class KilnSelf = const Name>                                 \
  decltype(auto) operator()(KilnArgs&&... kiln_args) const {                                \
    return ::kiln::nn::detail::call<KilnSelf>(*this, std::forward<KilnArgs>(kiln_args)...); \
  }

// All of KILN_MODULE but visit_members, for a class that writes its own. It stands behind the
// class's members.
#define KILN_MODULE_WITHOUT_VISIT(Name)                                                          \
 public:                                                                                         \
  static_assert(!::kiln::nn::detail::is_complete<Name, __COUNTER__>,                             \
                "KILN_MODULE: its first argument must be the class that it stands in");          \
  [[maybe_unused]] friend ::kiln::nn::detail::NamedParts<Name> kiln_names_parts(const Name*) {   \
    return {};                                                                                   \
  }                                                                                              \
  static const ::kiln::nn::detail::ModuleClass& kiln_class() {                                   \
    static const auto kiln_info = ::kiln::nn::detail::module_class_of<Name>(                     \
        #Name,                                                                                   \
        ::kiln::nn::detail::extra_state_of(&Name::get_extra_state, &Name::set_extra_state));     \
    return kiln_info;                                                                            \
  }                                                                                              \
  const ::kiln::nn::detail::ModuleClass& KILN_MODULE_is_missing_in_this_class() const override { \
    return kiln_class();                                                                         \
  }                                                                                              \
                                                                                                 \
  KILN_MODULE_CALLS(Name)                                                                        \
                                                                                                 \
  std::unique_ptr<Name> clone() const {                                                          \
    return std::unique_ptr<Name>(static_cast<Name*>(clone_module().release()));                  \
  }                                                                                              \
  std::unique_ptr<Name> valid() const {                                                          \
    return std::unique_ptr<Name>(static_cast<Name*>(valid_module().release()));                  \
  }                                                                                              \
  std::unique_ptr<Name> from_valid() const {                                                     \
    return std::unique_ptr<Name>(static_cast<Name*>(training_module().release()));               \
  }                                                                                              \
  ::kiln::nn::detail::CopyEnd<Name> kiln_copy_end_;
