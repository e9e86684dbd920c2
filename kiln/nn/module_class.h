// ModuleClass: what KILN_MODULE knows of the class that it stands in.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <typeinfo>

#include "kiln/tensor/tensor.h"

// What the name means where no base class is a Module; see Module::kiln_derives_from_module.
inline constexpr bool kiln_derives_from_module = false;

namespace kiln::nn {

class Module;

namespace detail {

struct ExtraState {
  bool get = false;
  bool set = false;
};

struct ModuleClass {
  const char* name;  // "Net"
  const std::type_info& type;
  size_t size;
  ExtraState extra;  // which of get_extra_state and set_extra_state the class overrides
  std::unique_ptr<Module> (*clone)(const Module& module);
  // Takes a copy of a module of the same class; false when it is of another.
  bool (*assign)(Module& module, const Module& other);
  Tensor (*call)(Module& module, Tensor x);
  const void* (*end_of_parts)(const Module& module);  // where KILN_MODULE stands
};

// Whether a class is complete at the place of the question; `place` tells questions apart.
template <class T, int place>
inline constexpr bool is_complete = requires { sizeof(T); };

// Turns into a pointer to a class that Name derives from and Base does not: a class whose parts
// KILN_MODULE_DERIVED(Name, Base, ..) would lose.
template <class Name, class Base>
struct BetweenOf {
  template <class T>
    requires(std::is_base_of_v<T, Name> && !std::is_same_v<T, Name> && !std::is_base_of_v<T, Base>)
  operator const T*() const;
};
struct NoParts {};
template <class Name>
struct NamedParts {};
NoParts kiln_names_parts(...);  // and one for each class with a KILN_MODULE

template <class Name, class Base>
inline constexpr bool keeps_base_parts = requires {
  { kiln_names_parts(BetweenOf<Name, Base>()) } -> std::same_as<NoParts>;
};

}  // namespace detail
}  // namespace kiln::nn
