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

#include <concepts>
#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/core/config_field.h"
#include "kiln/core/optional_field.h"
#include "kiln/core/required.h"

namespace kiln {

namespace detail {

template <class T>
struct DocumentedField {
  T& field;
  const char* text;
};

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
#define KILN_CONFIG_ENUM(Enum, ...)                                                 \
  inline ::kiln::detail::EnumValues<Enum> kiln_config_enum(Enum) {                  \
    using enum Enum;                                                                \
    static constexpr Enum kiln_values[] = {__VA_ARGS__};                            \
    return {#__VA_ARGS__, kiln_values, sizeof kiln_values / sizeof kiln_values[0]}; \
  }
