// The Backend and AutodiffBackend concepts.
//
// A backend is a struct of static functions: its four tensor primitives, a few facts about them,
// and the ops of ops.def. Derive it from BackendDefaults (defaults.h) to get every op marked
// `fallback` for free.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kiln/backend/arg.h"
#include "kiln/backend/attention_options.h"
#include "kiln/backend/functions.h"
#include "kiln/backend/line_map.h"
#include "kiln/backend/options.h"
#include "kiln/backend/recurrence_options.h"
#include "kiln/core/device.h"
#include "kiln/core/dtype.h"
#include "kiln/core/random.h"
#include "kiln/core/scalar.h"
#include "kiln/core/shape.h"
#include "kiln/core/slice.h"
#include "kiln/core/tensor_data.h"

namespace kiln {

// The words of ops.def, and how each becomes a C++ type for a given backend.
namespace op {

struct F {};
struct I {};
struct B {};
struct Q {};
struct OptF {};
struct FList {};
struct IList {};
struct BList {};
struct FMut {};
struct FI {};
struct FF {};
struct FFF {};

// clang-format off
template <class Bk, class T> struct Param { using Type = T; };
template <class Bk> struct Param<Bk, F> { using Type = Arg<typename Bk::FloatTensorPrimitive>; };
template <class Bk> struct Param<Bk, I> { using Type = Arg<typename Bk::IntTensorPrimitive>; };
template <class Bk> struct Param<Bk, B> { using Type = Arg<typename Bk::BoolTensorPrimitive>; };
template <class Bk> struct Param<Bk, Q> { using Type = Arg<typename Bk::QuantizedTensorPrimitive>; };
template <class Bk> struct Param<Bk, OptF> { using Type = const typename Bk::FloatTensorPrimitive*; };
template <class Bk> struct Param<Bk, FList> { using Type = std::span<const typename Bk::FloatTensorPrimitive>; };
template <class Bk> struct Param<Bk, IList> { using Type = std::span<const typename Bk::IntTensorPrimitive>; };
template <class Bk> struct Param<Bk, BList> { using Type = std::span<const typename Bk::BoolTensorPrimitive>; };
template <class Bk> struct Param<Bk, FMut> { using Type = std::span<typename Bk::FloatTensorPrimitive>; };

template <class Bk, class T> struct Return { using Type = T; };
template <class Bk> struct Return<Bk, F> { using Type = typename Bk::FloatTensorPrimitive; };
template <class Bk> struct Return<Bk, I> { using Type = typename Bk::IntTensorPrimitive; };
template <class Bk> struct Return<Bk, B> { using Type = typename Bk::BoolTensorPrimitive; };
template <class Bk> struct Return<Bk, Q> { using Type = typename Bk::QuantizedTensorPrimitive; };
template <class Bk> struct Return<Bk, FI> { using Type = std::pair<typename Bk::FloatTensorPrimitive, typename Bk::IntTensorPrimitive>; };
template <class Bk> struct Return<Bk, FF> { using Type = std::pair<typename Bk::FloatTensorPrimitive, typename Bk::FloatTensorPrimitive>; };
template <class Bk> struct Return<Bk, FFF> { using Type = std::tuple<typename Bk::FloatTensorPrimitive, typename Bk::FloatTensorPrimitive, typename Bk::FloatTensorPrimitive>; };
// clang-format on

template <class R, class... P>
struct Words {};

// Whether `Call`, a callable that forwards to one op of Bk, takes and gives what the table says.
template <class Bk, class Call, class R, class... P>
constexpr bool accepts(Words<R, P...>) {
  if constexpr (std::is_invocable_v<Call, typename Param<Bk, P>::Type...>) {
    using Given = std::invoke_result_t<Call, typename Param<Bk, P>::Type...>;
    using Wanted = typename Return<Bk, R>::Type;
    return std::is_void_v<Wanted> ? std::is_void_v<Given> : std::is_convertible_v<Given, Wanted>;
  } else {
    return false;
  }
}

// The name of the first op that a backend lacks or declares with other parameters, or null.
template <class Bk>
constexpr const char* first_missing() {
  // The backend is a template parameter of the lambda itself: only then is a missing op no error.
#define KILN_OP(level, name, ...)                                                            \
  {                                                                                          \
    constexpr auto call =                                                                    \
        []<class X = Bk, class... A>(A && ... a)->decltype(X::name(std::forward<A>(a)...)) { \
      return X::name(std::forward<A>(a)...);                                                 \
    };                                                                                       \
    if (!accepts<Bk, decltype(call)>(Words<__VA_ARGS__>{})) return #name;                    \
  }
#include "kiln/backend/ops.def"
  return nullptr;
}

}  // namespace op

// Rows of the op table, for those who generate from it at run time.
struct OpInfo {
  const char* name;
  Kind kind;
  bool required;
};
std::span<const OpInfo> op_table();

template <class T>
concept BackendTypes = requires {
  typename T::Device;
  typename T::FloatElem;
  typename T::IntElem;
  typename T::BoolElem;
  typename T::FloatTensorPrimitive;
  typename T::IntTensorPrimitive;
  typename T::BoolTensorPrimitive;
  typename T::QuantizedTensorPrimitive;
};

template <class T, class Primitive>
concept DescribesTensor = requires(const Primitive& x) {
  { T::shape(x) } -> std::convertible_to<Shape>;
  { T::dtype(x) } -> std::convertible_to<DType>;
  { T::device(x) } -> std::convertible_to<Device>;
};

template <class T>
concept BackendFacts = BackendTypes<T> && DescribesTensor<T, typename T::FloatTensorPrimitive> &&
                       DescribesTensor<T, typename T::IntTensorPrimitive> &&
                       DescribesTensor<T, typename T::BoolTensorPrimitive> &&
                       std::copyable<typename T::FloatTensorPrimitive> && requires(Device device) {
                         { T::name(device) } -> std::convertible_to<std::string>;
                         T::seed(device, uint64_t{});
                         T::sync(device);
                       };

// Facts that hold for every backend:
// - primitives are cheap to copy: a copy is another handle on the same tensor;
// - reshape, permute, expand and slice give views where they can, and *_assign writes through them;
// - random ops are functions of their stream, so that equal seeds give equal numbers on every
// backend.
template <class T>
concept Backend = BackendFacts<T> && op::first_missing<T>() == nullptr;

namespace op {

// A word in a template argument, so that a compiler's message shows it.
template <size_t N>
struct Word {
  char text[N] = {};
  consteval Word(const char (&from)[N]) {
    for (size_t i = 0; i < N; ++i) text[i] = from[i];
  }
};

template <class T>
inline constexpr const char* missing_op = first_missing<T>();

constexpr size_t length(const char* text) {
  size_t n = 0;
  while (text[n] != 0) ++n;
  return n;
}

template <class T>
consteval auto missing_word() {
  constexpr size_t n = length(missing_op<T>) + 1;
  char text[n] = {};
  for (size_t i = 0; i < n; ++i) text[i] = missing_op<T>[i];
  return Word<n>(text);
}

// What the message names: a type that is never complete.
template <class T, Word op>
struct backend_lacks_the_op;

}  // namespace op

// Stops the compiler at what T lacks of a backend: its types, its facts, or the first op of ops.def
// that is missing or has other parameters, by name.
template <class T>
constexpr void check_backend() {
  if constexpr (!BackendTypes<T>) {
    static_assert(BackendTypes<T>,
                  "check_backend: the backend lacks one of the types Device, FloatElem, IntElem, "
                  "BoolElem, FloatTensorPrimitive, IntTensorPrimitive, BoolTensorPrimitive, "
                  "QuantizedTensorPrimitive");
  } else if constexpr (!BackendFacts<T>) {
    static_assert(BackendFacts<T>,
                  "check_backend: the backend lacks name(device), seed(device, uint64_t) or "
                  "sync(device), or shape(x), dtype(x) or device(x) of one of its tensors");
  } else if constexpr (op::missing_op<T> != nullptr) {
    // The op that is missing, or has other parameters than kiln/backend/ops.def says:
    static_cast<void>(sizeof(op::backend_lacks_the_op<T, op::missing_word<T>()>));
  }
}

// A backend that records what is computed and differentiates it.
template <class T>
concept AutodiffBackend =
    Backend<T> && requires { typename T::InnerBackend; } && Backend<typename T::InnerBackend> &&
    std::same_as<typename T::Device, typename T::InnerBackend::Device> &&
    std::same_as<typename T::FloatElem, typename T::InnerBackend::FloatElem> &&
    std::same_as<typename T::IntElem, typename T::InnerBackend::IntElem> &&
    requires { typename T::Gradients; } &&
    // Another thread may take the gradients over: they can be moved there as a whole.
    std::movable<typename T::Gradients> &&
    std::is_nothrow_move_constructible_v<typename T::Gradients> &&
    requires(typename T::FloatTensorPrimitive tensor, const typename T::FloatTensorPrimitive& view,
             typename T::Gradients& grads, const typename T::Gradients& const_grads,
             typename T::IntTensorPrimitive int_tensor, typename T::BoolTensorPrimitive bool_tensor,
             typename T::QuantizedTensorPrimitive q_tensor,
             typename T::InnerBackend::FloatTensorPrimitive inner,
             typename T::InnerBackend::IntTensorPrimitive int_inner,
             typename T::InnerBackend::BoolTensorPrimitive bool_inner,
             typename T::InnerBackend::QuantizedTensorPrimitive q_inner) {
      { T::backward(tensor) } -> std::same_as<typename T::Gradients>;
      { T::grad(view, const_grads) } -> std::same_as<std::optional<decltype(inner)>>;
      { T::grad_remove(view, grads) } -> std::same_as<std::optional<decltype(inner)>>;
      { T::grad_replace(view, grads, inner) } -> std::same_as<void>;
      { T::inner(tensor) } -> std::same_as<decltype(inner)>;
      { T::int_inner(int_tensor) } -> std::same_as<decltype(int_inner)>;
      { T::bool_inner(bool_tensor) } -> std::same_as<decltype(bool_inner)>;
      { T::q_inner(q_tensor) } -> std::same_as<decltype(q_inner)>;
      { T::from_inner(inner) } -> std::same_as<decltype(tensor)>;
      { T::int_from_inner(int_inner) } -> std::same_as<decltype(int_tensor)>;
      { T::bool_from_inner(bool_inner) } -> std::same_as<decltype(bool_tensor)>;
      { T::q_from_inner(q_inner) } -> std::same_as<decltype(q_tensor)>;
    };

}  // namespace kiln
