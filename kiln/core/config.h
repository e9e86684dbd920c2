// Config: plain structs that save to and load from JSON, and document themselves. One line names
// the fields; doc() gives a field its description.
//
//   enum class Act { relu, gelu };
//   KILN_CONFIG_ENUM(Act, relu, gelu)
//
//   struct MlpConfig {
//     Required<int64_t> in_features;         // must be there when it is loaded
//     int64_t hidden = 64;                   // may be left out
//     std::optional<double> dropout = {};
//     Act act = Act::relu;
//     optim::AdamOptions optimizer = {};     // configs nest
//     KILN_CONFIG(MlpConfig, doc(in_features, "numbers in one sample"), hidden, dropout, act,
//     optimizer)
//   };
//
//   MlpConfig config{.in_features = 784};
//   config.save("mlp.json");
//   MlpConfig same = MlpConfig::load("mlp.json");
//   std::cout << MlpConfig::help();
//
// Fields are bools, numbers, strings, enums with a KILN_CONFIG_ENUM, DType, Device, other configs,
// and std::optional, vector, array and map<std::string, ..> of them. The struct stays an aggregate.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <ostream>
#include <span>
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
#include "kiln/core/optional_field.h"

namespace kiln {

// A field without a default; takes in braces what T takes. Reading one that was never set throws
// ValueError. (What is made from a configuration says which one: see check_required.)
template <class T>
class Required {
 public:
  Required() = default;
  template <class U>
    requires std::convertible_to<U, T>
  Required(U&& value) : value_(T(std::forward<U>(value))) {}
  Required(std::initializer_list<int64_t> values)
    requires detail::FromList<T>
      : value_(detail::from_list<T>(values)) {}
  template <class... Numbers>
    requires detail::FromNumbers<T, Numbers...>
  Required(Numbers... values) : value_(T(values...)) {}

  bool has_value() const { return value_.has_value(); }
  const T& value() const {
    if (!value_) {
      throw_error<ValueError>("Required: the field was never set; give it in the configuration");
    }
    return *value_;
  }
  operator const T&() const { return value(); }
  friend bool operator==(const Required&, const Required&) = default;

 private:
  std::optional<T> value_;
};

namespace detail {

template <class T>
struct DocumentedField {
  T& field;
  const char* text;
};

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
inline constexpr bool is_documented = false;
template <class T>
inline constexpr bool is_documented<DocumentedField<T>> = true;

// A field as visitors see it: as the base class that its type names, if it does.
template <class T>
auto& as_shown(T& field) {
  if constexpr (requires { typename T::KilnShown; }) {
    using Shown = typename T::KilnShown;
    return static_cast<std::conditional_t<std::is_const_v<T>, const Shown, Shown>&>(field);
  } else {
    return field;
  }
}

template <class Visitor, class T>
void visit_config_field(Visitor& visitor, std::string_view name, T& field) {
  if constexpr (is_documented<T>) {
    visitor(name, as_shown(field.field), field.text);
  } else {
    visitor(name, as_shown(field), "");
  }
}
template <class Visitor, class... Fields>
void visit_config_fields(Visitor& visitor, std::string_view names, Fields&&... fields) {
  (visit_config_field(visitor, next_config_name(names), fields), ...);
  static_cast<void>(names);
  static_cast<void>(visitor);
}

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
  auto [names, values] = kiln_config_enum(T(any()));
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

template <class T>
inline constexpr bool is_required = false;
template <class T>
inline constexpr bool is_required<Required<T>> = true;

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

// Throws ValueError with the names of the fields that are required and were not set: "LSTM:
// input_size was not set; give .input_size". `owner`: the class that is made from the
// configuration; without one, the configuration's name less "Config" or "Options".
struct RequiredFields {
  std::string unset;  // "in_features, out_features"

  template <class F>
  void operator()(std::string_view name, const F& field, const char*) {
    if constexpr (is_required<F>) {
      if (!field.has_value()) unset += concat(unset.empty() ? "" : ", ", name);
    }
  }
};
[[noreturn]] void throw_unset(std::string_view config, const char* owner, const std::string& unset);
template <class Config>
void check_required(const Config& config, const char* owner = nullptr) {
  if constexpr (IsConfig<Config>) {
    RequiredFields fields;
    config.kiln_visit_config(fields);
    if (!fields.unset.empty()) throw_unset(Config::kiln_config_name(), owner, fields.unset);
  }
}

template <class Config>
const Config& with_required(const Config& config, const char* owner = nullptr) {
  check_required(config, owner);
  return config;
}

struct ConfigHelpLine {
  std::string name, type, value, text;
};
std::string config_help(const char* name, const std::vector<ConfigHelpLine>& lines);

template <class T>
void add_config_help(std::vector<ConfigHelpLine>& lines, const std::string& prefix) {
  const T defaults{};
  auto write = [&]<class F>(std::string_view name, const F& field, const char* text) {
    const std::string full = concat(prefix, name);
    std::string value = "required";
    if constexpr (IsConfig<F>) {
      value = "";
    } else if constexpr (!is_required<F>) {
      value = encode_json(config_to_json(field), JsonFormat::text);
    }
    lines.push_back({full, config_type_name<F>(), value, text});
    if constexpr (IsConfig<F>) add_config_help<F>(lines, full + ".");
  };
  defaults.kiln_visit_config(write);
}

// Parses the text, with errors of the source's kind; `budget`: the file's.
Json parse_config(const ConfigSource& source, std::string_view text, Budget* budget = nullptr);
// Files, in kiln/io/config_file.cpp: written atomically; text of at most 64 MiB is read.
void save_config_text(const char* config, const std::string& path, const std::string& text);
Json load_config_json(const ConfigSource& source, const char* config, const std::string& path);

template <class T>
T parse_config_as(std::string_view text) {
  ConfigSource source(T::kiln_config_name(), "");
  T out{};
  config_from_json(parse_config(source, text), out, source);
  return out;
}
template <class T>
T load_config_as(const std::string& path) {
  ConfigSource source(T::kiln_config_name(), path);
  T out{};
  config_from_json(load_config_json(source, T::kiln_config_name(), path), out, source);
  return out;
}

}  // namespace detail

// A field with its description, among the arguments of KILN_CONFIG.
template <class T>
detail::DocumentedField<T> doc(T& field, const char* text) {
  return {field, text};
}

}  // namespace kiln

// (Its members are templates so that a header full of options costs nothing to include.)
//
// KILN_CONFIG(Name, field, doc(field, "what it means"), ...) goes into the body of struct Name;
// what follows it is public. It writes:
//   to_json_string()             pretty JSON; what << prints
//   from_json_string(text)       throws ValueError for an unknown field, a missing required one and
//                                a wrong type, and names the field: "optimizer.lr"
//   save(path), load(path)       the same in a file; IoError, which names the file too
//   load_binary(bytes)           from JSON text in memory
//   help()                       every field with type, default and description
#define KILN_CONFIG(Name, ...)                                                                  \
 public:                                                                                        \
  static constexpr const char* kiln_config_name() { return #Name; }                             \
  template <class KilnVisitor>                                                                  \
  void kiln_visit_config(KilnVisitor& kiln_visitor) {                                           \
    using ::kiln::doc;                                                                          \
    ::kiln::detail::visit_config_fields(kiln_visitor, #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__); \
  }                                                                                             \
  template <class KilnVisitor>                                                                  \
  void kiln_visit_config(KilnVisitor& kiln_visitor) const {                                     \
    using ::kiln::doc;                                                                          \
    ::kiln::detail::visit_config_fields(kiln_visitor, #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__); \
  }                                                                                             \
  template <class KilnSelf = Name>                                                              \
  std::string to_json_string() const {                                                          \
    return ::kiln::encode_json(::kiln::detail::config_to_json<KilnSelf>(*this));                \
  }                                                                                             \
  template <class KilnSelf = Name>                                                              \
  static KilnSelf from_json_string(std::string_view kiln_text) {                                \
    return ::kiln::detail::parse_config_as<KilnSelf>(kiln_text);                                \
  }                                                                                             \
  template <class KilnSelf = Name>                                                              \
  static KilnSelf load_binary(std::span<const std::byte> kiln_bytes) {                          \
    return from_json_string<KilnSelf>(                                                          \
        {reinterpret_cast<const char*>(kiln_bytes.data()), kiln_bytes.size()});                 \
  }                                                                                             \
  template <class KilnSelf = Name>                                                              \
  void save(const std::string& kiln_path) const {                                               \
    ::kiln::detail::save_config_text(#Name, kiln_path, to_json_string<KilnSelf>());             \
  }                                                                                             \
  template <class KilnSelf = Name>                                                              \
  static KilnSelf load(const std::string& kiln_path) {                                          \
    return ::kiln::detail::load_config_as<KilnSelf>(kiln_path);                                 \
  }                                                                                             \
  template <class KilnSelf = Name>                                                              \
  static std::string help() {                                                                   \
    std::vector<::kiln::detail::ConfigHelpLine> kiln_lines;                                     \
    ::kiln::detail::add_config_help<KilnSelf>(kiln_lines, "");                                  \
    return ::kiln::detail::config_help(#Name, kiln_lines);                                      \
  }                                                                                             \
  template <std::same_as<Name> KilnSelf>                                                        \
  friend std::string to_string(const KilnSelf& kiln_config) {                                   \
    return kiln_config.to_json_string();                                                        \
  }                                                                                             \
  template <std::same_as<Name> KilnSelf>                                                        \
  friend std::ostream& operator<<(std::ostream& kiln_out, const KilnSelf& kiln_config) {        \
    return kiln_out << kiln_config.to_json_string();                                            \
  }

// The names of an enumeration's values, at the enumeration's namespace scope.
#define KILN_CONFIG_ENUM(Enum, ...)                                                   \
  inline auto kiln_config_enum(Enum) {                                                \
    using enum Enum;                                                                  \
    return std::pair(std::string_view(#__VA_ARGS__), std::vector<Enum>{__VA_ARGS__}); \
  }
