// How the options of layers look in Python: for each type of a field, what it is read from, what it
// becomes, and its name for type checkers.
#pragma once

#include "kiln/nn/conv2d.h"
#include "kiln/nn/padding_nd.h"
#include "kiln/nn/real.h"
#include "kiln/nn/size2d.h"
#include "kiln/nn/size_nd.h"
#include "kiln/tensor/nn/sizes.h"
#include "nn_module.h"

namespace kiln::python {

// from(place, object): throws TypeError or ValueError naming the place, "Conv2d: stride".
template <class T>
struct OptionCast;

template <>
struct OptionCast<bool> {
  static constexpr const char* kAnnotation = "bool";
  static bool from(const std::string&, nb::handle value) {
    const int truth = PyObject_IsTrue(value.ptr());
    if (truth < 0) throw nb::python_error();
    return truth != 0;
  }
  static nb::object to(bool value) { return nb::bool_(value); }
};

template <>
struct OptionCast<int64_t> {
  static constexpr const char* kAnnotation = "int";
  static int64_t from(const std::string& place, nb::handle value) {
    return value_arg<int64_t>(place.c_str(), value, "an integer");
  }
  static nb::object to(int64_t value) { return nb::int_(value); }
};

template <>
struct OptionCast<nn::Real> {
  static constexpr const char* kAnnotation = "float";
  static nn::Real from(const std::string& place, nb::handle value) {
    int64_t whole = 0;
    if (PyLong_CheckExact(value.ptr()) && try_value(value, whole)) return whole;
    return value_arg<double>(place.c_str(), value, "a number");
  }
  static nb::object to(nn::Real value) {
    if (value.is_whole()) return nb::int_(static_cast<int64_t>(value));
    return nb::float_(static_cast<double>(value));
  }
};

template <>
struct OptionCast<Scalar> {
  static constexpr const char* kAnnotation = "float";
  static Scalar from(const std::string& place, nb::handle value) {
    return value_arg<Scalar>(place.c_str(), value, "a number");
  }
  static nb::object to(const Scalar& value) { return nb::cast(value); }
};

template <>
struct OptionCast<std::string> {
  static constexpr const char* kAnnotation = "str";
  static std::string from(const std::string& place, nb::handle value) {
    return value_arg<std::string>(place.c_str(), value, "a str");
  }
  static nb::object to(const std::string& value) { return nb::cast(value); }
};

template <>
struct OptionCast<Tensor> {
  static constexpr const char* kAnnotation = "Tensor | None";
  static Tensor from(const std::string& place, nb::handle value) {
    return value.is_none() ? Tensor() : tensor_arg(place.c_str(), value);
  }
  static nb::object to(const Tensor& value) { return nb::steal(tensor_object(value)); }
};

// Two tensors: the state of an LSTM.
template <>
struct OptionCast<std::pair<Tensor, Tensor>> {
  static constexpr const char* kAnnotation = "tuple[Tensor, Tensor]";
  static std::pair<Tensor, Tensor> from(const std::string& place, nb::handle value) {
    if ((!PyTuple_Check(value.ptr()) && !PyList_Check(value.ptr())) || nb::len(value) != 2) {
      throw nb::type_error(concat(place, ": expected a tuple of two tensors").c_str());
    }
    return {tensor_arg(place.c_str(), nb::object(value[0])),
            tensor_arg(place.c_str(), nb::object(value[1]))};
  }
  static nb::object to(const std::pair<Tensor, Tensor>& value) {
    return nb::make_tuple(nb::steal(tensor_object(value.first)),
                          nb::steal(tensor_object(value.second)));
  }
};

// One number, or as many as there are spatial dims.
inline IntList sizes_option(const std::string& place, nb::handle value) {
  return value_arg<IntList>(place.c_str(), value, "an integer or integers");
}
inline nb::object sizes_object(const Shape& sizes) {
  nb::list out;
  for (const int64_t size : sizes) out.append(size);
  return nb::tuple(out);
}

template <>
struct OptionCast<nn::Size2d> {
  static constexpr const char* kAnnotation = "int | tuple[int, int]";
  static nn::Size2d from(const std::string& place, nb::handle value) {
    const IntList list = sizes_option(place, value);
    if (list.is_number) return list.values[0];
    if (list.values.rank() == 1) return {list.values[0], list.values[0]};
    if (list.values.rank() != 2) {
      throw_error<ValueError>(place, ": expected one integer or two; got ", list.values);
    }
    return {list.values[0], list.values[1]};
  }
  static nb::object to(const nn::Size2d& value) {
    if (value.is_single()) return nb::int_(value.height());
    return nb::make_tuple(value.height(), value.width());
  }
};

inline bool has_none(nb::handle value) {
  if (!PyTuple_Check(value.ptr()) && !PyList_Check(value.ptr())) return false;
  for (nb::handle item : value) {
    if (item.is_none()) return true;
  }
  return false;
}

// Of a list an element may be None.
template <>
struct OptionCast<nn::SizeNd> {
  static constexpr const char* kAnnotation = "int | tuple[int, ...]";
  static nn::SizeNd from(const std::string& place, nb::handle value) {
    if (has_none(value)) {
      Shape sizes;
      for (nb::handle item : value) {
        sizes.push_back(item.is_none() ? nn::SizeNd::kNone
                                       : value_arg<int64_t>(place.c_str(), item, "an integer"));
      }
      return nn::SizeNd(sizes);
    }
    const IntList list = sizes_option(place, value);
    if (list.is_number) return list.values[0];
    if (list.values.rank() == 0) throw_error<ValueError>(place, ": expected integers; got none");
    return nn::SizeNd(list.values);
  }
  static nb::object to(const nn::SizeNd& value) {
    if (value.is_single()) return nb::int_(value.values()[0]);
    nb::list out;
    for (const int64_t size : value.values()) {
      out.append(size == nn::SizeNd::kNone ? nb::object(nb::none()) : nb::object(nb::int_(size)));
    }
    return nb::tuple(out);
  }
};

template <>
struct OptionCast<nn::PaddingNd> {
  static constexpr const char* kAnnotation = "int | tuple[int, ...] | str";
  static nn::PaddingNd from(const std::string& place, nb::handle value) {
    if (PyUnicode_Check(value.ptr())) return OptionCast<std::string>::from(place, value);
    return OptionCast<nn::SizeNd>::from(place, value);
  }
  static nb::object to(const nn::PaddingNd& value) {
    if (!value.word().empty()) return nb::cast(value.word());
    return OptionCast<nn::SizeNd>::to(value.sizes());
  }
};

template <>
struct OptionCast<nn::Padding2d> {
  static constexpr const char* kAnnotation = "int | tuple[int, int] | str";
  static nn::Padding2d from(const std::string& place, nb::handle value) {
    if (PyUnicode_Check(value.ptr())) return OptionCast<std::string>::from(place, value);
    return OptionCast<nn::Size2d>::from(place, value);
  }
  static nb::object to(const nn::Padding2d& value) {
    if (!value.word().empty()) return nb::cast(value.word());
    return OptionCast<nn::Size2d>::to(value.sizes());
  }
};

template <>
struct OptionCast<Sizes> {
  static constexpr const char* kAnnotation = "int | tuple[int, ...]";
  static Sizes from(const std::string& place, nb::handle value) {
    return Sizes(sizes_option(place, value).values);
  }
  static nb::object to(const Sizes& value) {
    if (value.values().rank() == 1) return nb::int_(value.values()[0]);
    return sizes_object(value.values());
  }
};

template <>
struct OptionCast<std::vector<int64_t>> {
  static constexpr const char* kAnnotation = "int | Sequence[int]";
  static std::vector<int64_t> from(const std::string& place, nb::handle value) {
    const IntList list = sizes_option(place, value);
    return {list.values.begin(), list.values.end()};
  }
  static nb::object to(const std::vector<int64_t>& value) {
    return sizes_object(Shape(std::span<const int64_t>(value)));
  }
};

// Empty: None.
template <>
struct OptionCast<std::vector<double>> {
  static constexpr const char* kAnnotation = "float | tuple[float, ...] | None";
  static std::vector<double> from(const std::string& place, nb::handle value) {
    double number = 0.0;
    if (value.is_none()) return {};
    if (try_value(value, number)) return {number};
    return value_arg<std::vector<double>>(place.c_str(), value, "one number or several");
  }
  static nb::object to(const std::vector<double>& value) {
    if (value.empty()) return nb::none();
    if (value.size() == 1) return nb::float_(value[0]);
    return nb::tuple(nb::list(nb::cast(value)));
  }
};

template <class T>
struct OptionCast<std::optional<T>> {
  static inline const std::string annotation = std::string(OptionCast<T>::kAnnotation) + " | None";
  static inline const char* const kAnnotation = annotation.c_str();
  static std::optional<T> from(const std::string& place, nb::handle value) {
    if (value.is_none()) return std::nullopt;
    return OptionCast<T>::from(place, value);
  }
  static nb::object to(const std::optional<T>& value) {
    return value ? OptionCast<T>::to(*value) : nb::none();
  }
};

template <class T>
struct OptionCast<Required<T>> {
  static inline const char* const kAnnotation = OptionCast<T>::kAnnotation;
  static Required<T> from(const std::string& place, nb::handle value) {
    return OptionCast<T>::from(place, value);
  }
  static nb::object to(const Required<T>& value) { return OptionCast<T>::to(value.value()); }
};

// An enumeration, by its values' names.
template <kiln::detail::IsConfigEnum T>
struct OptionCast<T> {
  static constexpr const char* kAnnotation = "str";
  static T from(const std::string& place, nb::handle value) {
    const std::string word = OptionCast<std::string>::from(place, value);
    for (const auto& [name, known] : kiln::detail::config_enum_values<T>()) {
      if (name == word) return known;
    }
    throw_error<ValueError>(place, ": got '", word, "'; expected ",
                            kiln::detail::config_type_name<T>());
  }
  static nb::object to(T value) {
    for (const auto& [name, known] : kiln::detail::config_enum_values<T>()) {
      if (known == value) return nb::cast(name);
    }
    return nb::none();
  }
};

}  // namespace kiln::python
