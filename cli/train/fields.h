// Fields: an object of a configuration, read field by field: what is not there takes its default,
// what is not legal is an error that names the field and what is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/usage_error.h"
#include "kiln/core/config.h"
#include "kiln/core/json.h"
#include "kiln/optim/ruled_optimizer_impl.h"

namespace kiln::cli {

class Fields {
 public:
  static constexpr int64_t kAnyWhole = std::numeric_limits<int64_t>::max();

  // `file` begins messages; `path` is where the object stands ("data", or nothing). Throws
  // UsageError unless it is an object; so does everything below for what is not legal.
  Fields(std::string file, Json json, std::string path = "");

  bool has(const char* name) const { return json_.find(name) != nullptr; }
  // Without a default (nullopt, or none given) the field is required.
  int64_t whole(const char* name, std::optional<int64_t> preset, int64_t low = 0,
                int64_t high = kAnyWhole);
  // In [low, high]; above low where `open`.
  double real(const char* name, std::optional<double> preset,
              double low = -std::numeric_limits<double>::infinity(),
              double high = std::numeric_limits<double>::infinity(), bool open = false);
  bool flag(const char* name, bool preset);
  std::string text(const char* name, std::optional<std::string> preset = {});
  // One of these words.
  std::string word(const char* name, std::optional<std::string> preset,
                   const std::vector<std::string>& legal);
  std::vector<std::string> texts(const char* name, std::vector<std::string> preset);
  std::vector<std::string> words(const char* name, std::vector<std::string> preset,
                                 const std::vector<std::string>& legal);
  std::vector<int64_t> wholes(const char* name, std::vector<int64_t> preset, int64_t low = 0,
                              int64_t high = kAnyWhole);
  // `count`: how many there must be; 0: any number of them.
  std::vector<double> reals(const char* name, std::vector<double> preset, size_t count = 0);
  // Height and width: a number for both, or a list of two. Nothing where the field is not there.
  std::optional<std::pair<int64_t, int64_t>> sides(const char* name, int64_t low, int64_t high);
  // Nothing where the field is not there or null.
  std::optional<int64_t> maybe_whole(const char* name, int64_t low = 0, int64_t high = kAnyWhole);
  std::optional<double> maybe_real(const char* name, double low, double high, bool open = false);
  // A file or folder; a relative one is below `folder`. Absolute.
  std::string path(const char* name, const std::string& folder, bool required = true);
  // An object below this one. A text stands for {"name": text}; what is not there is {}.
  Fields object(const char* name);
  // All fields of a configuration of the library.
  template <class Options>
  void options(Options& out) {
    const auto visit = [this](std::string_view name, auto& field, const char*) {
      this->option(std::string(name).c_str(), field);
    };
    out.kiln_visit_config(visit);
  }

  // A field that will be read later.
  void expect(const char* name) { known_.emplace_back(name); }
  // Throws for fields that nobody asked for.
  void check() const;
  // The same, and then what was read, with the defaults.
  Json finish();
  // Takes a part's fields, which must be finished first.
  void add(const char* name, Json part) { read_.add(name, std::move(part)); }
  // "config.json: optimizer.lr: what; got ..; expected .."
  [[noreturn]] void fail(const std::string& name, const std::string& what) const;
  // The name of a field with its path.
  std::string full(const std::string& name) const;
  const std::string& file() const { return file_; }

 private:
  const Json* find(const char* name);
  const Json* need(const char* name, bool has_preset);
  [[noreturn]] void wrong(const std::string& name, const Json& got,
                          const std::string& expected) const;
  void keep(const char* name, Json value);

  template <class T>
  void option(const char* name, T& field) {
    if constexpr (std::is_same_v<T, bool>) {
      field = flag(name, field);
    } else if constexpr (std::is_integral_v<T>) {
      field = whole(name, field, std::numeric_limits<int64_t>::min());
    } else if constexpr (std::is_floating_point_v<T>) {
      field = real(name, field);
    } else if constexpr (optim::detail::is_array<T>) {
      const std::vector<double> values = reals(name, {field.begin(), field.end()}, field.size());
      std::copy(values.begin(), values.end(), field.begin());
    } else if constexpr (detail::IsConfigEnum<T>) {
      std::vector<std::string> legal;
      std::string preset;
      for (const auto& [word, value] : detail::config_enum_values<T>()) {
        legal.push_back(word);
        if (value == field) preset = word;
      }
      const std::string chosen = word(name, preset, legal);
      for (const auto& [word, value] : detail::config_enum_values<T>()) {
        if (word == chosen) field = value;
      }
    } else {
      static_assert(std::is_same_v<T, std::optional<double>>, "no field of this type");
      field = maybe_real(name, -std::numeric_limits<double>::infinity(),
                         std::numeric_limits<double>::infinity());
    }
  }

  std::string file_;
  Json json_;
  std::string path_;
  std::vector<std::string> known_;
  Json read_ = Json::Object();
};

}  // namespace kiln::cli
