// Layers by their first options: LSTM(16, 8) is LSTM(LSTMConfig{16, 8}), and LSTM(16, 8,
// {.num_layers = 2}) gives the others by name. ParamOptions may follow: LSTM(16, 8, {.num_layers =
// 2}, {.dtype = kFloat64}). KILN_MODULE_DECLARED writes these constructors.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/core/config.h"
#include "kiln/core/shape.h"

namespace kiln::nn {

class Module;
struct ParamOptions;

namespace detail {

// Whether arguments are the first fields of a layer's configuration, in its order, which is that of
// PyTorch's constructors.
template <class M, class First, class... Rest>
constexpr bool is_positional() {
  using Given = std::remove_cvref_t<First>;
  if constexpr (std::is_base_of_v<Module, Given>) {
    return false;
  } else if constexpr (requires { typename M::Config; }) {
    using Config = typename M::Config;
    return !std::is_base_of_v<Config, Given> &&
           requires { Config(std::declval<First>(), std::declval<Rest>()...); };
  } else {
    return false;
  }
}
template <class M, class... Args>
concept Positional = sizeof...(Args) > 0 && is_positional<M, Args...>();

// The same for a layer whose constructor takes the rest of its configuration behind them. One that
// keeps its options in a struct of their own (Conv2dOptions) has constructors that take that.
template <class M, class... Args>
concept PositionalBeforeOptions =
    Positional<M, Args...> && !requires(typename M::Config config) { config.options; };

// Whether ParamOptions may follow the configuration.
template <class M>
concept TakesParams = std::is_constructible_v<M, typename M::Config, const ParamOptions&>;
template <class M, class... Args>
concept PositionalBeforeParams = PositionalBeforeOptions<M, Args...> && TakesParams<M>;

// Whether the last of such arguments are ParamOptions. (Braces there would be the configuration.)
template <class M, class... Args>
concept PositionalThenParams = Positional<M, Args...> && TakesParams<M>;
template <class M, size_t... I, class... Args>
constexpr bool is_positional_with_params(std::index_sequence<I...>, std::type_identity<Args>...) {
  using Given = std::tuple<Args...>;
  if constexpr (std::is_same_v<std::remove_cvref_t<std::tuple_element_t<sizeof...(I), Given>>,
                               ParamOptions>) {
    return PositionalThenParams<M, std::tuple_element_t<I, Given>...>;
  } else {
    return false;
  }
}
template <class M, class... Args>
concept PositionalWithParams =
    sizeof...(Args) > 1 &&
    is_positional_with_params<M>(std::make_index_sequence<sizeof...(Args) - 1>(),
                                 std::type_identity<Args>()...);

// Such arguments, apart.
template <class Config, class... Args>
Config config_before_params(Args&... args) {
  return [&]<size_t... I>(std::index_sequence<I...>, const auto& given) {
    return Config(std::get<I>(given)...);
  }(std::make_index_sequence<sizeof...(Args) - 1>(), std::forward_as_tuple(args...));
}
template <class... Args>
const ParamOptions& params_behind(Args&... args) {
  return std::get<sizeof...(Args) - 1>(std::forward_as_tuple(args...));
}

// Whether the first option is a list of sizes, or one for all dims.
template <class M>
concept TakesSizes = Positional<M, Shape>;
template <class M>
concept TakesSizesBeforeOptions = PositionalBeforeOptions<M, Shape>;

// One size in braces, MaxPool1d({3}). To GCC that could be a MaxPool1d, too, for the copy
// constructor. This type is better than both: to GCC a number (an array would be what it takes
// {.padding = 3} for), to Clang an array (it warns of braces around a number). A constructor with
// NoSize beside it makes {} ambiguous, which would be 0.
#if defined(__clang__)
using OneSize = const int64_t (&)[1];
inline int64_t size_of(OneSize size) { return size[0]; }
#else
using OneSize = int64_t;
inline int64_t size_of(OneSize size) { return size; }
#endif
enum class NoSize {};

[[noreturn]] void throw_given_twice(std::string_view config, std::string_view name);

// A configuration with these values in its first fields. Throws ValueError for a required one that
// it has already.
template <class Config, class... Args>
Config with_positions(Config config, Args&&... args) {
  const auto given = std::forward_as_tuple(std::forward<Args>(args)...);
  size_t at = 0;
  const auto set = [&at]<class F, class A>(size_t i, std::string_view name, F& field, A& value) {
    if constexpr (std::is_convertible_v<A, F>) {
      if (i != at) return;
      if constexpr (kiln::detail::is_required<F>) {
        if (field.has_value()) throw_given_twice(Config::kiln_config_name(), name);
      }
      field = static_cast<F>(value);
    }
  };
  auto visit = [&](std::string_view name, auto& field, const char*) {
    [&]<size_t... I>(std::index_sequence<I...>) {
      (set(I, name, field, std::get<I>(given)), ...);
    }(std::index_sequence_for<Args...>());
    ++at;
  };
  config.kiln_visit_config(visit);
  return config;
}

// The same with sizes in its first field.
template <class Config, std::integral T, size_t kCount>
Config with_sizes(Config config, const T (&sizes)[kCount]) {
  if constexpr (kCount == 1) {
    return with_positions(std::move(config), static_cast<int64_t>(sizes[0]));
  } else {
    return with_positions(std::move(config), Shape(std::vector<int64_t>(sizes, sizes + kCount)));
  }
}

}  // namespace detail
}  // namespace kiln::nn

// Constructors that take the first options by position, maybe the others by name behind them, and
// maybe ParamOptions at the end.
#define KILN_POSITIONAL(Name)                                                                    \
  template <class... KilnArgs, class KilnSelf = Name>                                            \
    requires ::kiln::nn::detail::Positional<KilnSelf, KilnArgs...>                               \
  explicit(sizeof...(KilnArgs) == 1) Name(KilnArgs&&... kiln_args)                               \
      : Name(typename KilnSelf::Config(std::forward<KilnArgs>(kiln_args)...)) {}                 \
  template <class... KilnArgs, class KilnSelf = Name>                                            \
    requires ::kiln::nn::detail::PositionalWithParams<KilnSelf, KilnArgs...>                     \
  Name(KilnArgs&&... kiln_args)                                                                  \
      : Name(::kiln::nn::detail::config_before_params<typename KilnSelf::Config>(kiln_args...),  \
             ::kiln::nn::detail::params_behind(kiln_args...)) {}                                 \
  template <class KilnFirst, class KilnSelf = Name>                                              \
    requires ::kiln::nn::detail::PositionalBeforeOptions<KilnSelf, KilnFirst>                    \
  Name(KilnFirst&& kiln_first, typename KilnSelf::Config kiln_options)                           \
      : Name(::kiln::nn::detail::with_positions(std::move(kiln_options),                         \
                                                std::forward<KilnFirst>(kiln_first))) {}         \
  template <class KilnFirst, class KilnSelf = Name>                                              \
    requires ::kiln::nn::detail::PositionalBeforeParams<KilnSelf, KilnFirst>                     \
  Name(KilnFirst&& kiln_first, typename KilnSelf::Config kiln_options,                           \
       const ::kiln::nn::ParamOptions& kiln_params)                                              \
      : Name(::kiln::nn::detail::with_positions(std::move(kiln_options),                         \
                                                std::forward<KilnFirst>(kiln_first)),            \
             kiln_params) {}                                                                     \
  template <class KilnFirst, class KilnSecond, class KilnSelf = Name>                            \
    requires ::kiln::nn::detail::PositionalBeforeOptions<KilnSelf, KilnFirst, KilnSecond>        \
  Name(KilnFirst&& kiln_first, KilnSecond&& kiln_second, typename KilnSelf::Config kiln_options) \
      : Name(::kiln::nn::detail::with_positions(std::move(kiln_options),                         \
                                                std::forward<KilnFirst>(kiln_first),             \
                                                std::forward<KilnSecond>(kiln_second))) {}       \
  template <class KilnFirst, class KilnSecond, class KilnSelf = Name>                            \
    requires ::kiln::nn::detail::PositionalBeforeParams<KilnSelf, KilnFirst, KilnSecond>         \
  Name(KilnFirst&& kiln_first, KilnSecond&& kiln_second, typename KilnSelf::Config kiln_options, \
       const ::kiln::nn::ParamOptions& kiln_params)                                              \
      : Name(::kiln::nn::detail::with_positions(std::move(kiln_options),                         \
                                                std::forward<KilnFirst>(kiln_first),             \
                                                std::forward<KilnSecond>(kiln_second)),          \
             kiln_params) {}                                                                     \
  template <class KilnFirst, class KilnSecond, class KilnThird, class KilnSelf = Name>           \
    requires ::kiln::nn::detail::PositionalBeforeOptions<KilnSelf, KilnFirst, KilnSecond,        \
                                                         KilnThird>                              \
  Name(KilnFirst&& kiln_first, KilnSecond&& kiln_second, KilnThird&& kiln_third,                 \
       typename KilnSelf::Config kiln_options)                                                   \
      : Name(::kiln::nn::detail::with_positions(                                                 \
            std::move(kiln_options), std::forward<KilnFirst>(kiln_first),                        \
            std::forward<KilnSecond>(kiln_second), std::forward<KilnThird>(kiln_third))) {}      \
  template <class KilnFirst, class KilnSecond, class KilnThird, class KilnSelf = Name>           \
    requires ::kiln::nn::detail::PositionalBeforeParams<KilnSelf, KilnFirst, KilnSecond,         \
                                                        KilnThird>                               \
  Name(KilnFirst&& kiln_first, KilnSecond&& kiln_second, KilnThird&& kiln_third,                 \
       typename KilnSelf::Config kiln_options, const ::kiln::nn::ParamOptions& kiln_params)      \
      : Name(::kiln::nn::detail::with_positions(                                                 \
                 std::move(kiln_options), std::forward<KilnFirst>(kiln_first),                   \
                 std::forward<KilnSecond>(kiln_second), std::forward<KilnThird>(kiln_third)),    \
             kiln_params) {}                                                                     \
  KILN_POSITIONAL_SIZES(Name)

// Sizes in braces before options by name. Without those, braces of several numbers may be several
// options, which GCC does not tell from options by name: only layers whose options are of different
// types take them (pooling_layers.h).
#define KILN_POSITIONAL_SIZES(Name)                                                     \
  template <std::integral KilnSize, size_t kKilnCount, class KilnSelf = Name>           \
    requires ::kiln::nn::detail::TakesSizesBeforeOptions<KilnSelf>                      \
  Name(const KilnSize(&kiln_sizes)[kKilnCount], typename KilnSelf::Config kiln_options) \
      : Name(::kiln::nn::detail::with_sizes(std::move(kiln_options), kiln_sizes)) {}    \
  template <class KilnSelf = Name>                                                      \
    requires ::kiln::nn::detail::TakesSizes<KilnSelf>                                   \
  explicit Name(::kiln::nn::detail::OneSize kiln_size)                                  \
      : Name(typename KilnSelf::Config(::kiln::nn::detail::size_of(kiln_size))) {}      \
  template <class KilnSelf = Name>                                                      \
    requires ::kiln::nn::detail::TakesSizes<KilnSelf>                                   \
  explicit Name(::kiln::nn::detail::NoSize) = delete;
