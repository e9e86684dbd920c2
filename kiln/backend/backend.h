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
#include <tuple>
#include <type_traits>
#include <utility>

#include "kiln/backend/arg.h"
#include "kiln/backend/attention_options.h"
#include "kiln/backend/functions.h"
#include "kiln/backend/options.h"
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
#define KILN_OP(level, name, ...)                                                                 \
  {                                                                                               \
    constexpr auto call = []<class... A>(A&&... a) -> decltype(Bk::name(std::forward<A>(a)...)) { \
      return Bk::name(std::forward<A>(a)...);                                                     \
    };                                                                                            \
    if (!accepts<Bk, decltype(call)>(Words<__VA_ARGS__>{})) return #name;                         \
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

// Facts that hold for every backend:
// - primitives are cheap to copy: a copy is another handle on the same tensor;
// - reshape, permute, expand and slice give views where they can, and *_assign writes through them;
// - random ops are functions of their stream, so that equal seeds give equal numbers on every
// backend.
template <class T>
concept Backend = BackendTypes<T> && DescribesTensor<T, typename T::FloatTensorPrimitive> &&
                  DescribesTensor<T, typename T::IntTensorPrimitive> &&
                  DescribesTensor<T, typename T::BoolTensorPrimitive> &&
                  std::copyable<typename T::FloatTensorPrimitive> && requires(Device device) {
                    { T::name(device) } -> std::convertible_to<std::string>;
                    T::seed(device, uint64_t{});
                    T::sync(device);
                  } && op::first_missing<T>() == nullptr;

// Same as Backend<T>, but names the op that is missing.
template <class T>
consteval void check_backend() {
  constexpr const char* missing = op::first_missing<T>();
  static_assert(missing == nullptr,
                "the backend lacks an op of kiln/backend/ops.def: see `missing`");
  static_assert(Backend<T>);
}

// A backend that records what is computed and differentiates it.
template <class T>
concept AutodiffBackend =
    Backend<T> && BackendTypes<typename T::InnerBackend> &&
    std::same_as<typename T::Device, typename T::InnerBackend::Device> &&
    std::same_as<typename T::FloatElem, typename T::InnerBackend::FloatElem> &&
    std::same_as<typename T::IntElem, typename T::InnerBackend::IntElem> &&
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
