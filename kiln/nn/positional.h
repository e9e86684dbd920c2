// Layers by their first options: LSTM(16, 8) is LSTM(LSTMConfig{16, 8}), and LSTM(16, 8,
// {.num_layers = 2}) gives the others by name. KILN_MODULE_DECLARED writes these constructors.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kiln/core/config.h"
#include "kiln/core/shape.h"

namespace kiln::nn {

class Module;

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

}  // namespace detail
}  // namespace kiln::nn
