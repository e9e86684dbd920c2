// How C++'s own types look in Python: numbers, texts, optional values, vectors, pairs and maps.
//
// Note [No caster throws]
// nanobind calls from_python() in functions that are noexcept, so that an exception in it ends the
// process. Every caster of Kiln therefore reads inside KeptError::read, which catches, and throws
// what it kept where the value is taken: that is in the bound function's call, where nanobind turns
// exceptions into Python's. nanobind's own casters of std::optional, std::vector and the like take
// values of other casters inside from_python(), and run Python code while they look into a list
// that this code may change; the ones below do neither. They replace nanobind/stl/*.h, which no
// file may include: a second definition does not compile.
#pragma once

#include <complex>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "kiln/core/error.h"
#include "python_api.h"

namespace kiln::python {

namespace nb = nanobind;

// An integer of Python's that no type here holds: also Python's OverflowError.
class OverflowError : public ValueError {
 public:
  using ValueError::ValueError;
};

// An error met while an argument was read, until the function's call throws it.
class KeptError {
 public:
  // What `read` returns, or true when it threw. In nanobind's first pass over several overloads
  // (flags without `convert`) an error means only that this overload does not fit.
  template <class F>
  bool read(uint8_t flags, F&& read) noexcept {
    try {
      return read();
    } catch (...) {
      if ((flags & static_cast<uint8_t>(nb::detail::cast_flags::convert)) == 0) return false;
      error_ = std::current_exception();
      return true;
    }
  }
  void rethrow() {
    if (error_ != nullptr) [[unlikely]]
      std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  std::exception_ptr error_;
};

// Ends a failed conversion: true when it is only that the object is of another kind, so that the
// caller can say what it expected. What is no Exception (KeyboardInterrupt, ...) is thrown.
bool clear_conversion_error();
// Throws OverflowError for an int that does not fit `type`; the Python error is cleared.
[[noreturn]] void throw_overflow(nb::handle number, const char* type);

// Calls f(item) for each item of a sequence until it gives false, and says whether all gave true;
// false also for what is no sequence, and for text. f may run Python code: each item is held, and a
// list that changes its size meanwhile is an error (RuntimeError).
template <class F>
bool for_each_item(nb::handle sequence, F&& f) {
  PyObject* o = sequence.ptr();
  if (PyUnicode_Check(o) || PyBytes_Check(o)) return false;
  if (PyList_Check(o)) {  // also a subclass: its __iter__ is not asked
    const Py_ssize_t n = list_size(o);
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (list_size(o) != n) {
        throw_error<RuntimeError>("a list changed its size while it was read; got ", list_size(o),
                                  " items; expected ", n);
      }
      const nb::object item = nb::borrow(list_item(o, i));
      if (!f(nb::handle(item))) return false;
    }
    return true;
  }
  nb::object tuple = nb::borrow(sequence);
  if (!PyTuple_Check(o)) {
    if (!PySequence_Check(o)) return false;
    tuple = nb::steal(PySequence_Tuple(o));
    if (!tuple.is_valid()) {
      clear_conversion_error();
      return false;
    }
  }
  const Py_ssize_t n = tuple_size(tuple.ptr());
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!f(nb::handle(tuple_item(tuple.ptr(), i)))) return false;
  }
  return true;
}

// A caster that holds a value which `read` makes; `read` may throw.
template <class T, bool (*read)(nb::handle, T*)>
class CheckedCaster {
 public:
  using Value = T;
  template <class U>
  using Cast = nb::detail::movable_cast_t<U>;
  template <class>
  static constexpr bool can_cast() {
    return true;
  }

  bool from_python(nb::handle src, uint8_t flags, nb::detail::cleanup_list*) noexcept {
    return error_.read(flags, [&] { return read(src, &value_); });
  }

  explicit operator T&() {
    error_.rethrow();
    return value_;
  }
  explicit operator T&&() {
    error_.rethrow();
    return std::move(value_);
  }

 private:
  T value_;
  KeptError error_;
};

}  // namespace kiln::python

namespace nanobind::detail {

// Numbers. An int of Python's that does not fit is an error that says so.
template <class T>
struct number_caster {
  static constexpr auto Name = const_name<std::is_integral_v<T>>("int", "float");
  using Value = T;
  template <class U>
  using Cast = movable_cast_t<U>;
  template <class>
  static constexpr bool can_cast() {
    return true;
  }

  bool from_python(handle src, uint8_t flags, cleanup_list*) noexcept {
    if (load(src.ptr(), flags)) [[likely]]
      return true;
    const bool last = (flags & static_cast<uint8_t>(cast_flags::convert)) != 0;
    overflow_ = last && PyLong_Check(src.ptr()) ? src.ptr() : nullptr;
    return overflow_ != nullptr;
  }
  static handle from_cpp(T x, rv_policy, cleanup_list*) noexcept {
    if constexpr (std::is_same_v<T, double>) {
      return PyFloat_FromDouble(x);
    } else if constexpr (std::is_signed_v<T>) {
      return PyLong_FromLongLong(static_cast<long long>(x));
    } else {
      return PyLong_FromUnsignedLongLong(static_cast<unsigned long long>(x));
    }
  }

  explicit operator T&() {
    if (overflow_ != nullptr) [[unlikely]]
      kiln::python::throw_overflow(overflow_, kType);
    return value_;
  }
  explicit operator T&&() { return std::move(operator T&()); }

 private:
  static constexpr const char* kType = std::is_same_v<T, double>     ? "float64"
                                       : std::is_same_v<T, int64_t>  ? "int64"
                                       : std::is_same_v<T, uint64_t> ? "uint64"
                                                                     : "int32";

  bool load(PyObject* o, uint8_t flags) noexcept {
    if constexpr (std::is_same_v<T, double>) {
      return load_f64(o, flags, &value_);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return load_i64(o, flags, &value_);
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      return load_u64(o, flags, &value_);
    } else {
      return load_i32(o, flags, &value_);
    }
  }

  T value_ = 0;
  PyObject* overflow_ = nullptr;  // the int that does not fit, borrowed from the caller
};

template <>
struct type_caster<double> : number_caster<double> {};
template <>
struct type_caster<int64_t> : number_caster<int64_t> {};
template <>
struct type_caster<uint64_t> : number_caster<uint64_t> {};
template <>
struct type_caster<int32_t> : number_caster<int32_t> {};

// Made in the call, where memory may run out. A text with lone surrogates has no UTF-8: the
// UnicodeEncodeError says so.
template <>
struct type_caster<std::string> {
  static constexpr auto Name = const_name("str");
  using Value = std::string;
  template <class>
  using Cast = std::string;
  template <class>
  static constexpr bool can_cast() {
    return true;
  }

  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    text_ = src.ptr();
    return PyUnicode_Check(src.ptr());
  }
  static handle from_cpp(const std::string& x, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_FromStringAndSize(x.data(), static_cast<Py_ssize_t>(x.size()));
  }

  explicit operator std::string() const {
    Py_ssize_t size = 0;
    const char* const chars = PyUnicode_AsUTF8AndSize(text_, &size);
    if (chars == nullptr) raise_python_error();
    return {chars, static_cast<size_t>(size)};
  }

 private:
  PyObject* text_ = nullptr;
};

template <>
struct type_caster<std::complex<double>> {
  static constexpr auto Name = const_name("complex");
  using Value = std::complex<double>;
  template <class>
  using Cast = std::complex<double>;
  template <class>
  static constexpr bool can_cast() {
    return true;
  }

  bool from_python(handle src, uint8_t flags, cleanup_list*) noexcept {
    return error_.read(flags, [&] {
      const bool convert = (flags & static_cast<uint8_t>(cast_flags::convert)) != 0;
      if (!convert && !PyComplex_Check(src.ptr()) && !PyFloat_CheckExact(src.ptr())) return false;
      // Python takes each of NumPy's arrays for a complex number.
      if (kiln::python::name_of_type(src) == "numpy.ndarray") return false;
      value_ = kiln::python::complex_value(src.ptr());
      if (PyErr_Occurred() == nullptr) return true;
      if (PyLong_Check(src.ptr())) kiln::python::throw_overflow(src, "float");
      kiln::python::clear_conversion_error();
      return false;
    });
  }
  static handle from_cpp(const std::complex<double>& x, rv_policy, cleanup_list*) noexcept {
    return PyComplex_FromDoubles(x.real(), x.imag());
  }

  explicit operator std::complex<double>() {
    error_.rethrow();
    return value_;
  }

 private:
  std::complex<double> value_;
  kiln::python::KeptError error_;
};

// None, or the value, which is taken from its caster in the call.
template <class T>
struct type_caster<std::optional<T>> {
  using Caster = make_caster<T>;
  static constexpr auto Name = optional_name(Caster::Name);
  using Value = std::optional<T>;
  template <class>
  using Cast = Value;
  template <class>
  bool can_cast() const noexcept {
    return none_ || caster_.template can_cast<T>();
  }

  bool from_python(handle src, uint8_t flags, cleanup_list* cleanup) noexcept {
    none_ = src.is_none();
    return none_ || (caster_.from_python(src, flags_for_local_caster<T>(flags), cleanup) &&
                     caster_.template can_cast<T>());
  }
  template <class U>
  static handle from_cpp(U&& value, rv_policy policy, cleanup_list* cleanup) {
    if (!value) return none().release();
    return Caster::from_cpp(forward_like_<U>(*value), policy, cleanup);
  }

  explicit operator Value() {
    if (none_) return std::nullopt;
    return Value(caster_.operator cast_t<T>());
  }

 private:
  Caster caster_;
  bool none_ = false;
};

template <class T>
struct remove_opt_mono<std::optional<T>> : remove_opt_mono<T> {};
template <class T>
struct has_arg_defaults<std::optional<T>> : std::true_type {};

template <class T>
struct type_caster<std::vector<T>> {
  using Caster = make_caster<T>;
  static constexpr auto Name = io_name("collections.abc.Sequence", "list") + const_name("[") +
                               Caster::Name + const_name("]");
  using Value = std::vector<T>;
  template <class U>
  using Cast = movable_cast_t<U>;
  template <class>
  static constexpr bool can_cast() {
    return true;
  }

  bool from_python(handle src, uint8_t flags, cleanup_list* cleanup) noexcept {
    const uint8_t item_flags = flags_for_local_caster<T>(flags);
    return error_.read(flags, [&] {
      if (PyList_Check(src.ptr()) || PyTuple_Check(src.ptr())) {
        value_.reserve(static_cast<size_t>(Py_SIZE(src.ptr())));
      }
      return kiln::python::for_each_item(src, [&](handle item) {
        Caster caster;
        if (!caster.from_python(item, item_flags, cleanup)) return false;
        if (!caster.template can_cast<T>()) return false;
        value_.push_back(caster.operator cast_t<T>());
        return true;
      });
    });
  }
  template <class U>
  static handle from_cpp(U&& items, rv_policy policy, cleanup_list* cleanup) {
    object out = steal(PyList_New(static_cast<Py_ssize_t>(items.size())));
    if (!out.is_valid()) return {};
    Py_ssize_t index = 0;
    for (auto&& item : items) {
      const handle h = Caster::from_cpp(forward_like_<U>(item), policy, cleanup);
      if (!h.is_valid()) return {};
      kiln::python::set_list_item(out.ptr(), index++, h.ptr());
    }
    return out.release();
  }

  explicit operator Value&() {
    error_.rethrow();
    return value_;
  }
  explicit operator Value&&() { return std::move(operator Value&()); }

 private:
  Value value_;
  kiln::python::KeptError error_;
};

template <class A, class B>
struct type_caster<std::pair<A, B>> {
  using First = make_caster<A>;
  using Second = make_caster<B>;
  static constexpr auto Name =
      const_name("tuple[") + concat(First::Name, Second::Name) + const_name("]");
  using Value = std::pair<A, B>;
  template <class>
  using Cast = Value;
  template <class>
  bool can_cast() const noexcept {
    return true;
  }

  bool from_python(handle src, uint8_t flags, cleanup_list* cleanup) noexcept {
    return error_.read(flags, [&] {
      // Held until the call: the casters may look at the objects again.
      const auto keep = [&](handle item) {
        if (count_ < 2) items_[count_] = borrow(item);
        return ++count_ <= 2;
      };
      return kiln::python::for_each_item(src, keep) && count_ == 2 &&
             first_.from_python(items_[0], flags_for_local_caster<A>(flags), cleanup) &&
             second_.from_python(items_[1], flags_for_local_caster<B>(flags), cleanup) &&
             first_.template can_cast<A>() && second_.template can_cast<B>();
    });
  }
  template <class U>
  static handle from_cpp(U&& value, rv_policy policy, cleanup_list* cleanup) {
    const object first = steal(First::from_cpp(forward_like_<U>(value.first), policy, cleanup));
    if (!first.is_valid()) return {};
    const object second = steal(Second::from_cpp(forward_like_<U>(value.second), policy, cleanup));
    if (!second.is_valid()) return {};
    return PyTuple_Pack(2, first.ptr(), second.ptr());
  }

  explicit operator Value() {
    error_.rethrow();
    return Value(first_.operator cast_t<A>(), second_.operator cast_t<B>());
  }

 private:
  object items_[2];
  int count_ = 0;
  First first_;
  Second second_;
  kiln::python::KeptError error_;
};

template <class K, class V>
struct type_caster<std::map<K, V>> {
  static constexpr auto Name =
      const_name("dict[") + concat(make_caster<K>::Name, make_caster<V>::Name) + const_name("]");
  using Value = std::map<K, V>;
  template <class U>
  using Cast = movable_cast_t<U>;
  template <class>
  static constexpr bool can_cast() {
    return true;
  }

  bool from_python(handle src, uint8_t flags, cleanup_list* cleanup) noexcept {
    return error_.read(flags, [&] {
      if (!PyDict_Check(src.ptr())) return false;
      const object items = steal(PyDict_Items(src.ptr()));  // a list that nobody else has
      if (!items.is_valid()) raise_python_error();
      return kiln::python::for_each_item(items, [&](handle item) {
        make_caster<K> key;
        make_caster<V> value;
        if (!key.from_python(kiln::python::tuple_item(item.ptr(), 0),
                             flags_for_local_caster<K>(flags), cleanup) ||
            !value.from_python(kiln::python::tuple_item(item.ptr(), 1),
                               flags_for_local_caster<V>(flags), cleanup) ||
            !key.template can_cast<K>() || !value.template can_cast<V>()) {
          return false;
        }
        value_.emplace(key.operator cast_t<K>(), value.operator cast_t<V>());
        return true;
      });
    });
  }
  template <class U>
  static handle from_cpp(U&& items, rv_policy policy, cleanup_list* cleanup) {
    object out = steal(PyDict_New());
    if (!out.is_valid()) return {};
    for (auto&& [key, value] : items) {
      const object k = steal(make_caster<K>::from_cpp(key, policy, cleanup));
      const object v = steal(make_caster<V>::from_cpp(value, policy, cleanup));
      if (!k.is_valid() || !v.is_valid()) return {};
      if (PyDict_SetItem(out.ptr(), k.ptr(), v.ptr()) != 0) return {};
    }
    return out.release();
  }

  explicit operator Value&() {
    error_.rethrow();
    return value_;
  }
  explicit operator Value&&() { return std::move(operator Value&()); }

 private:
  Value value_;
  kiln::python::KeptError error_;
};

}  // namespace nanobind::detail
