// MemberVisitor: how everything that is done to modules (saving, moving, counting, printing, ...)
// sees their parts.
//
// Note [One visit]
// KILN_MODULE(Net, conv, fc) writes one virtual function, visit_members, that shows each named
// member to a visitor. No other code knows what a module consists of. A visitor sees direct members
// only: for what lies below a module it goes on with module.visit_parts(*this).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/nn/buffer.h"
#include "kiln/nn/param.h"

namespace kiln::nn {

class Module;
class MemberVisitor;

// A std container among a module's members; its elements are named 0, 1, 2, ...
class MemberGroup {
 public:
  virtual void visit_members(MemberVisitor& visitor) = 0;

 protected:
  ~MemberGroup() = default;
};

// A member that holds a module by std::shared_ptr.
class SharedModule {
 public:
  virtual std::shared_ptr<Module> get() const = 0;
  // Throws TypeError when the holder cannot take a module of that class.
  virtual void set(const std::shared_ptr<Module>& module) = 0;

 protected:
  ~SharedModule() = default;
};

class MemberVisitor;
namespace detail {
// Shows what a computed parameter is made of. (parametrization.cpp)
void visit_computed(MemberVisitor& visitor, std::string_view name, Param<Tensor>& param);
}  // namespace detail

class MemberVisitor {
 public:
  virtual ~MemberVisitor() = default;

  // Param and Buffer may be undefined (PyTorch's None). Empty pointers and optionals are not shown
  // at all.
  virtual void parameter(std::string_view name, Param<Tensor>& value) = 0;
  virtual void buffer(std::string_view name, Buffer& value) = 0;
  virtual void module(std::string_view name, Module& value) = 0;
  virtual void group(std::string_view name, MemberGroup& elements) = 0;
  // A parameter that is computed from others: these are shown in its place.
  virtual void computed_parameter(std::string_view name, Param<Tensor>& value) {
    detail::visit_computed(*this, name, value);
  }
  virtual void shared_module(std::string_view name, SharedModule& value) {
    module(name, *value.get());
  }
};

namespace detail {

[[noreturn]] void throw_cannot_hold(const Module& module);

template <class M>
class SharedPointer final : public SharedModule {
 public:
  explicit SharedPointer(std::shared_ptr<M>& pointer) : pointer_(pointer) {}
  std::shared_ptr<Module> get() const override { return pointer_; }
  void set(const std::shared_ptr<Module>& module) override {
    auto typed = std::dynamic_pointer_cast<M>(module);
    if (typed == nullptr) throw_cannot_hold(*module);
    pointer_ = std::move(typed);
  }

 private:
  std::shared_ptr<M>& pointer_;
};

template <class F>
class GroupOf final : public MemberGroup {
 public:
  explicit GroupOf(F visit) : visit_(visit) {}
  void visit_members(MemberVisitor& visitor) override { visit_(visitor); }

 private:
  F visit_;
};

template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <class... A, template <class...> class Template>
inline constexpr bool is_a<Template<A...>, Template> = true;
template <class T>
inline constexpr bool is_array = std::is_bounded_array_v<T>;
template <class T, size_t N>
inline constexpr bool is_array<std::array<T, N>> = true;

template <class T>
inline constexpr bool always_false = false;

template <class T>
void visit_member(MemberVisitor& visitor, std::string_view name, T& member) {
  static_assert(!std::is_const_v<T>, "KILN_MODULE: a part of a module must not be const");
  if constexpr (std::is_base_of_v<Module, T>) {
    visitor.module(name, member);
  } else if constexpr (std::is_same_v<T, Param<Tensor>>) {
    if (member.is_computed()) {
      visitor.computed_parameter(name, member);
    } else {
      visitor.parameter(name, member);
    }
  } else if constexpr (std::is_same_v<T, Buffer>) {
    visitor.buffer(name, member);
  } else if constexpr (is_a<T, std::shared_ptr>) {
    if (member == nullptr) return;
    if constexpr (std::is_base_of_v<Module, typename T::element_type>) {
      SharedPointer<typename T::element_type> shared(member);
      visitor.shared_module(name, shared);
    } else {
      visit_member(visitor, name, *member);
    }
  } else if constexpr (is_a<T, std::unique_ptr> || is_a<T, std::optional>) {
    if (member) visit_member(visitor, name, *member);
  } else if constexpr (is_a<T, std::vector> || is_array<T>) {
    GroupOf group([&member](MemberVisitor& inner) {
      size_t i = 0;
      for (auto& element : member) visit_member(inner, std::to_string(i++), element);
    });
    visitor.group(name, group);
  } else if constexpr (is_a<T, std::tuple> || is_a<T, std::pair>) {
    GroupOf group([&member](MemberVisitor& inner) {
      std::apply(
          [&inner](auto&... elements) {
            size_t i = 0;
            (visit_member(inner, std::to_string(i++), elements), ...);
          },
          member);
    });
    visitor.group(name, group);
  } else {
    static_assert(always_false<T>,
                  "KILN_MODULE: this member is no Param<Tensor>, Buffer or Module, and no "
                  "std::vector, array, tuple, pair, optional, unique_ptr or shared_ptr of them. "
                  "Name only the parts that belong to the module's state; a plain Tensor becomes "
                  "a part as a Param<Tensor> (trained) or a Buffer (not trained).");
  }
}

// Cuts the next name off a list "conv1, this->fc": "conv1".
std::string_view next_name(std::string_view& names);

// `names` is the text of the argument list that `members` comes from.
template <class... T>
void visit_fields(MemberVisitor& visitor, std::string_view names, T&... members) {
  (visit_member(visitor, next_name(names), members), ...);
  static_cast<void>(names);
  static_cast<void>(visitor);
}

}  // namespace detail
}  // namespace kiln::nn
