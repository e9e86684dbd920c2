// ConfigField: how a field of a configuration of each type is written to JSON and read from it.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/core/choice.h"
#include "kiln/core/device.h"
#include "kiln/core/dtype.h"
#include "kiln/core/error.h"
#include "kiln/core/json.h"
#include "kiln/core/required.h"

namespace kiln::detail {

// Where a configuration comes from, and what is being read of it.
class ConfigSource {
 public:
  // `file`: empty for text in memory. Errors are IoErrors for files and ValueErrors for text.
  ConfigSource(std::string config, std::string file)
      : config_(std::move(config)), file_(std::move(file)) {}
  // "MlpConfig: 'mlp.json': field 'optimizer.lr' has a wrong type; got ...; expected ...".
  [[noreturn]] void fail(const std::string& what, const std::string& got,
                         const std::string& expected) const;
  [[noreturn]] void wrong_type(const Json& got, const std::string& expected) const;
  [[noreturn]] void unknown(const std::string& name, const std::string& known) const;

  // A field while it is read: "optimizer" and then "lr".
  class Scope {
   public:
    Scope(ConfigSource& source, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ConfigSource& source_;
    size_t length_;
  };

 private:
  std::string config_;
  std::string file_;
  std::string path_;
};

// Cuts the next field's name off the text of a KILN_CONFIG's arguments: both "hidden" and
// "doc(hidden, \"units\")" give "hidden".
std::string_view next_config_name(std::string_view& arguments);

template <class T>
concept IsConfig = requires {
  { T::kiln_config_name() } -> std::convertible_to<const char*>;
};
// An enumeration with a KILN_CONFIG_ENUM, or a class with a KILN_CHOICE.
template <class T>
concept IsConfigEnum = (std::is_enum_v<T> || requires { typename T::KilnChoice; }) &&
                       requires(T value) { kiln_config_enum(value); };
// A type with its own form in JSON: to_config_json(value), from_config_json(json, value), which is
// false when the JSON is none, and config_type(value).
template <class T>
concept HasConfigJson = requires(const T& value, T& out, const Json& json) {
  { to_config_json(value) } -> std::convertible_to<Json>;
  { from_config_json(json, out) } -> std::convertible_to<bool>;
  { config_type(value) } -> std::convertible_to<std::string>;
};

template <class T>
std::vector<std::pair<std::string, T>> config_enum_values() {
  constexpr auto any = [] {
    if constexpr (std::is_enum_v<T>) {
      return T{};
    } else {
      return typename T::Value{};
    }
  };
  const EnumValues<T> values = kiln_config_enum(T(any()));
  std::string_view names = values.names;
  std::vector<std::pair<std::string, T>> out;
  for (const T value : values) out.emplace_back(next_config_name(names), value);
  return out;
}

template <class T>
struct ConfigField;  // type(), to_json(value), from_json(json, value, source)

template <class T>
Json config_to_json(const T& value) {
  return ConfigField<T>::to_json(value);
}
template <class T>
void config_from_json(const Json& json, T& out, ConfigSource& source) {
  ConfigField<T>::from_json(json, out, source);
}
template <class T>
std::string config_type_name() {
  return ConfigField<T>::type();
}

inline std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

template <class T>
  requires std::is_arithmetic_v<T>
struct ConfigField<T> {
  static std::string type() {
    return std::same_as<T, bool> ? "boolean" : std::is_integral_v<T> ? "integer" : "number";
  }
  static Json to_json(T value) {
    if constexpr (std::same_as<T, bool> || std::is_integral_v<T>) {
      return Json(value);
    } else {
      return Json(static_cast<double>(value));
    }
  }
  static void from_json(const Json& json, T& out, ConfigSource& source) {
    if constexpr (std::same_as<T, bool>) {
      const bool* value = json.as<bool>();
      if (value == nullptr) source.wrong_type(json, "true or false");
      out = *value;
    } else if constexpr (std::is_integral_v<T>) {
      const int64_t* value = json.as<int64_t>();
      if (value == nullptr || !std::in_range<T>(*value)) {
        source.wrong_type(
            json, concat("an integer from ", std::to_string(std::numeric_limits<T>::min()), " to ",
                         std::to_string(std::numeric_limits<T>::max())));
      }
      out = static_cast<T>(*value);
    } else {
      double value = 0.0;
      const std::string* word = json.as<std::string>();
      if (const double* number = json.as<double>()) {
        value = *number;
      } else if (const int64_t* whole = json.as<int64_t>()) {
        value = static_cast<double>(*whole);
      } else if (word != nullptr && (*word == "inf" || *word == "-inf" || *word == "nan")) {
        const double inf = std::numeric_limits<double>::infinity();
        value = *word == "inf" ? inf : *word == "-inf" ? -inf : std::nan("");
      } else {
        source.wrong_type(json, "a number");
      }
      out = static_cast<T>(value);
      if (std::isinf(out) && !std::isinf(value)) source.wrong_type(json, "a number that fits");
    }
  }
};

template <>
struct ConfigField<std::string> {
  static std::string type() { return "string"; }
  static Json to_json(const std::string& value) { return value; }
  static void from_json(const Json& json, std::string& out, ConfigSource& source) {
    const std::string* value = json.as<std::string>();
    if (value == nullptr) source.wrong_type(json, "a string");
    out = *value;
  }
};

// An error of the parser becomes one of the field.
template <class T, class Parse>
struct ConfigName {
  static Json to_json(const T& value) { return to_string(value); }
  static void from_json(const Json& json, T& out, ConfigSource& source) {
    const std::string* name = json.as<std::string>();
    if (name == nullptr) source.wrong_type(json, concat("the name of a ", Parse::what));
    try {
      out = Parse()(*name);
    } catch (const Error&) {
      source.wrong_type(json, concat("the name of a ", Parse::what));
    }
  }
  static std::string type() { return Parse::what; }
};
struct ParseDType {
  static constexpr const char* what = "dtype";
  DType operator()(const std::string& name) const { return parse_dtype(name); }
};
struct ParseDevice {
  static constexpr const char* what = "device";
  Device operator()(const std::string& name) const { return Device(name); }
};
template <>
struct ConfigField<DType> : ConfigName<DType, ParseDType> {};
template <>
struct ConfigField<Device> : ConfigName<Device, ParseDevice> {};

template <IsConfigEnum T>
struct ConfigField<T> {
  static std::string names() {
    std::vector<std::string> all;
    for (const auto& [name, value] : config_enum_values<T>()) all.push_back(name);
    return joined(all);
  }
  static std::string type() { return "one of " + names(); }
  static Json to_json(T wanted) {
    for (const auto& [name, value] : config_enum_values<T>()) {
      if (value == wanted) return name;
    }
    throw_error<ValueError>("Config: an enumeration has a value without a name; expected one of ",
                            names());
  }
  static void from_json(const Json& json, T& out, ConfigSource& source) {
    const std::string* word = json.as<std::string>();
    for (const auto& [name, value] : config_enum_values<T>()) {
      if (word != nullptr && name == *word) {
        out = value;
        return;
      }
    }
    source.wrong_type(json, type());
  }
};

template <HasConfigJson T>
struct ConfigField<T> {
  static std::string type() { return config_type(T{}); }
  static Json to_json(const T& value) { return to_config_json(value); }
  static void from_json(const Json& json, T& out, ConfigSource& source) {
    if (!from_config_json(json, out)) source.wrong_type(json, type());
  }
};

template <class T>
struct ConfigField<Required<T>> {
  static std::string type() { return config_type_name<T>(); }
  static Json to_json(const Required<T>& value) { return config_to_json(value.value()); }
  static void from_json(const Json& json, Required<T>& out, ConfigSource& source) {
    T value{};
    config_from_json(json, value, source);
    out = std::move(value);
  }
};

template <class T>
struct ConfigField<std::optional<T>> {
  static std::string type() { return config_type_name<T>() + " or null"; }
  static Json to_json(const std::optional<T>& value) {
    return value ? config_to_json(*value) : Json();
  }
  static void from_json(const Json& json, std::optional<T>& out, ConfigSource& source) {
    out.reset();
    if (json.is_null()) return;
    T value{};
    config_from_json(json, value, source);
    out = std::move(value);
  }
};

template <class T>
struct ConfigField<std::vector<T>> {
  static std::string type() { return "list of " + config_type_name<T>(); }
  static Json to_json(const std::vector<T>& values) {
    Json out = Json::Array();
    for (const T& value : values) out.add(config_to_json(value));
    return out;
  }
  static void from_json(const Json& json, std::vector<T>& out, ConfigSource& source) {
    const auto* items = json.as<Json::Array>();
    if (items == nullptr) source.wrong_type(json, "a " + type());
    out.clear();
    for (size_t i = 0; i < items->size(); ++i) {
      const ConfigSource::Scope scope(source, std::to_string(i));
      T value{};
      config_from_json((*items)[i], value, source);
      out.push_back(std::move(value));
    }
  }
};

template <class T, size_t N>
struct ConfigField<std::array<T, N>> {
  static std::string type() { return concat("list of ", N, " ", config_type_name<T>()); }
  static Json to_json(const std::array<T, N>& values) {
    return config_to_json(std::vector<T>(values.begin(), values.end()));
  }
  static void from_json(const Json& json, std::array<T, N>& out, ConfigSource& source) {
    const auto* items = json.as<Json::Array>();
    if (items == nullptr || items->size() != N) source.wrong_type(json, "a " + type());
    std::vector<T> values;
    config_from_json(json, values, source);
    for (size_t i = 0; i < N; ++i) out[i] = std::move(values[i]);
  }
};

template <class T>
struct ConfigField<std::map<std::string, T>> {
  static std::string type() { return "object of " + config_type_name<T>(); }
  static Json to_json(const std::map<std::string, T>& values) {
    Json out = Json::Object();
    for (const auto& [name, value] : values) out.add(name, config_to_json(value));
    return out;
  }
  static void from_json(const Json& json, std::map<std::string, T>& out, ConfigSource& source) {
    const auto* members = json.as<Json::Object>();
    if (members == nullptr) source.wrong_type(json, "an " + type());
    out.clear();
    for (const auto& [name, member] : *members) {
      const ConfigSource::Scope scope(source, name);
      T value{};
      config_from_json(member, value, source);
      out.emplace(name, std::move(value));
    }
  }
};

template <IsConfig T>
struct ConfigField<T> {
  static std::string type() { return T::kiln_config_name(); }
  static Json to_json(const T& config) {
    Json out = Json::Object();
    auto write = [&out]<class F>(std::string_view name, const F& field, const char*) {
      if constexpr (is_required<F>) {
        if (!field.has_value()) {
          throw_error<ValueError>(T::kiln_config_name(), ": the required field '", name,
                                  "' was never set");
        }
      }
      out.add(std::string(name), config_to_json(field));
    };
    config.kiln_visit_config(write);
    return out;
  }
  // Fields that the JSON does not have keep their defaults. `out` is changed only as a whole.
  static void from_json(const Json& json, T& out, ConfigSource& source) {
    const auto* members = json.as<Json::Object>();
    if (members == nullptr)
      source.wrong_type(json, concat("an object with the fields of ", type()));
    T config{};
    std::vector<std::string> known;
    auto read = [&]<class F>(std::string_view name, F& field, const char*) {
      known.emplace_back(name);
      const ConfigSource::Scope scope(source, name);
      if (const Json* value = json.find(name)) {
        config_from_json(*value, field, source);
      } else if constexpr (is_required<F>) {
        source.fail("is required and missing", "nothing",
                    concat("a value of type ", ConfigField<F>::type()));
      }
    };
    config.kiln_visit_config(read);
    for (const auto& [name, value] : *members) {
      bool found = false;
      for (const std::string& field : known) found = found || field == name;
      if (!found) source.unknown(name, joined(known));
    }
    out = std::move(config);
  }
};

}  // namespace kiln::detail
