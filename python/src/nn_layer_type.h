// LayerType for one class: its options from the class's Config, its arithmetic from its forward.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "kiln/nn/layer.h"
#include "nn_layer.h"
#include "nn_layer_options.h"

namespace kiln::python {

// Calls f(name, field) for each option; nested configurations count as their fields.
template <class Config, class F>
void visit_options(Config& config, F& f) {
  auto visitor = [&f]<class T>(std::string_view name, T& field, const char*) {
    if constexpr (kiln::detail::IsConfig<std::remove_const_t<T>>) {
      visit_options(field, f);
    } else {
      f(name, field);
    }
  };
  config.kiln_visit_config(visitor);
}

// Calls f(place, field) for one of them.
template <class Config, class F>
void visit_option(const char* layer, Config& config, size_t index, F&& f) {
  size_t i = 0;
  auto visitor = [&](std::string_view name, auto& field) {
    if (i++ == index) f(concat(layer, ": ", name), field);
  };
  visit_options(config, visitor);
}

// ---- forward

// One argument of a call, read from Python.
template <class T>
class LayerArgument {
 public:
  LayerArgument(const char* layer, PyObject* value)
      : value_(OptionCast<T>::from(concat(layer, ": an argument of forward"), value)) {}
  const T& get() const { return value_; }
  int64_t numel() const { return 0; }

 private:
  T value_;
};

template <>
class LayerArgument<Tensor> {
 public:
  LayerArgument(const char* layer, PyObject* value) {
    if (value == Py_None) return;
    value_ = tensor_pointer(value);
    if (value_ == nullptr) tensor_arg(layer, value);  // throws
  }
  const Tensor& get() const { return value_ != nullptr ? *value_ : none_; }
  int64_t numel() const { return value_ != nullptr && value_->defined() ? value_->numel() : 0; }

 private:
  const Tensor* value_ = nullptr;
  Tensor none_;
};

template <class T>
struct ArgumentValue {
  using Type = std::remove_cvref_t<T>;
};
template <>
struct ArgumentValue<TensorArg> {
  using Type = Tensor;
};

inline PyObject* layer_result(Tensor&& x) { return tensor_object(std::move(x)); }
inline PyObject* layer_result(std::pair<Tensor, Tensor>&& x) {
  return nb::make_tuple(nb::steal(tensor_object(std::move(x.first))),
                        nb::steal(tensor_object(std::move(x.second))))
      .release()
      .ptr();
}

inline PyObject* layer_result(std::pair<Tensor, std::pair<Tensor, Tensor>>&& x) {
  return nb::make_tuple(nb::steal(tensor_object(std::move(x.first))),
                        nb::steal(layer_result(std::move(x.second))))
      .release()
      .ptr();
}

// Calls f(layer, arguments...), whose arguments have the types A.
template <class... A, class L, class F, size_t... I>
PyObject* call_layer(const char* name, L& layer, PyObject* const* args, int64_t numel, const F& f,
                     std::index_sequence<I...>) {
  const std::tuple<LayerArgument<A>...> values(LayerArgument<A>(name, args[I])...);
  ((numel = std::max(numel, std::get<I>(values).numel())), ...);
  auto out = [&] {
    const Unlocked lock(numel);
    return f(layer, std::get<I>(values).get()...);
  }();
  return layer_result(std::move(out));
}
template <class... A, class L, class F>
PyObject* call_layer(const char* name, L& layer, PyObject* const* args, int64_t numel, const F& f) {
  return call_layer<A...>(name, layer, args, numel, f, std::index_sequence_for<A...>());
}

// forward of a class that has one, by its type.
// The class or a base of it has the forward.
template <class L, class C, class R, class... A>
PyObject* call_forward(const char* name, L& layer, PyObject* const* args, int64_t numel,
                       R (C::*)(A...) const) {
  return call_layer<typename ArgumentValue<A>::Type...>(
      name, layer, args, numel, [](L& l, const auto&... x) { return l.forward(x...); });
}
template <class L, class C, class R, class... A>
PyObject* call_forward(const char* name, L& layer, PyObject* const* args, int64_t numel,
                       R (C::*)(A...)) {
  return call_layer<typename ArgumentValue<A>::Type...>(
      name, layer, args, numel, [](L& l, const auto&... x) { return l.forward(x...); });
}

// To be specialized for a class whose forward is overloaded, or looks different in Python.
template <class L>
struct LayerForward {
  static PyObject* call(const char* name, L& layer, PyObject* const* args, int64_t numel) {
    if constexpr (requires { layer.forward_with_indices(Tensor()); }) {
      bool indices = false;
      const auto find = [&](std::string_view option, const auto& field) {
        if constexpr (std::is_same_v<decltype(field), const bool&>) {
          if (option == "return_indices") indices = field;
        }
      };
      visit_options(layer.config(), find);
      if (indices) {
        return call_layer<Tensor>(name, layer, args, numel,
                                  [](L& l, const Tensor& x) { return l.forward_with_indices(x); });
      }
    }
    return call_forward<L>(name, layer, args, numel, &L::forward);
  }
};

// ---- The class

// What a class's Config says; layers with the same Config share it.
template <class Config>
class LayerOptionsOf : public LayerType {
 public:
  using LayerType::LayerType;

  std::vector<LayerOption> options() const final {
    std::vector<LayerOption> out;
    const auto add = [&]<class T>(std::string_view name, const T& field) {
      LayerOption option{std::string(name), {}, OptionCast<T>::kAnnotation};
      if constexpr (!kiln::detail::is_required<T>) option.standard = OptionCast<T>::to(field);
      if constexpr (requires { Config::kPythonName; }) {
        if (name == Config::kPythonName.first) option.name = Config::kPythonName.second;
      }
      if constexpr (requires { Config::kKeywordOnly; }) {
        option.keyword_only = name == Config::kKeywordOnly;
      }
      if constexpr (requires { Config::kAllKeywordOnly; }) option.keyword_only = true;
      out.push_back(std::move(option));
    };
    const Config standard{};
    visit_options(standard, add);
    return out;
  }
  bool takes_anything() const final {
    return requires { Config::kTakesAnything; };
  }
  nb::object option(const nn::Module& layer, size_t index) const final {
    nb::object out;
    visit_option(
        name(), static_cast<const nn::Layer<Config>&>(layer).config(), index,
        [&]<class T>(const std::string&, const T& field) { out = OptionCast<T>::to(field); });
    return out;
  }
  void set_option(nn::Module& layer, size_t index, nb::handle value) const final {
    visit_option(name(), nn::detail::LayerAccess::config_of<Config>(layer), index,
                 [&]<class T>(const std::string& place, T& field) {
                   field = OptionCast<T>::from(place, value);
                 });
  }

 protected:
  Config config_from(const std::vector<nb::object>& values) const {
    Config config;
    size_t i = 0;
    const auto read = [&]<class T>(std::string_view option, T& field) {
      field = OptionCast<T>::from(concat(name(), ": ", option), values[i++]);
    };
    visit_options(config, read);
    return config;
  }
};

template <class L>
class LayerTypeOf final : public LayerOptionsOf<typename L::Config> {
 public:
  using Config = typename L::Config;
  using LayerOptionsOf<Config>::LayerOptionsOf;
  using LayerType::name;

  bool has_parameters() const override { return kHasParameters; }
  int64_t state_version() const override {
    if constexpr (requires { L::kStateVersion; }) return L::kStateVersion;
    return 1;
  }
  bool has_method(std::string_view method) const override {
    if (method == "reset_parameters") return requires(L& l) { l.reset_parameters(); };
    if (method == "reset_running_stats") return requires(L& l) { l.reset_running_stats(); };
    return false;
  }
  void call_method(nn::Module& layer, std::string_view method) const override {
    if constexpr (requires(L& l) { l.reset_parameters(); }) {
      if (method == "reset_parameters") static_cast<L&>(layer).reset_parameters();
    }
    if constexpr (requires(L& l) { l.reset_running_stats(); }) {
      if (method == "reset_running_stats") static_cast<L&>(layer).reset_running_stats();
    }
  }

  std::unique_ptr<nn::Module> make(const std::vector<nb::object>& values,
                                   const nn::ParamOptions& options) const override {
    if constexpr (kHasParameters) {
      return std::make_unique<L>(this->config_from(values), options);
    } else {
      return std::make_unique<L>(this->config_from(values));
    }
  }
  std::unique_ptr<nn::Module> copy(const nn::Module& layer) const override {
    const nn::detail::ShareOnCopy share;
    return std::make_unique<L>(static_cast<const L&>(layer));
  }
  PyObject* forward(nn::Module& layer, PyObject* const* args, int64_t numel) const override {
    return LayerForward<L>::call(name(), static_cast<L&>(layer), args, numel);
  }

 private:
  static constexpr bool kHasParameters = std::is_constructible_v<L, Config, nn::ParamOptions>;
};

}  // namespace kiln::python
