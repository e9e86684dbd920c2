// Record: a module's state apart from the module: values with the ids of their parameters, and
// whatever numbers and words belong to them. Recorder: how a record becomes a file.
//
//   Record record = model.into_record();
//   record.set_value("epoch", 7);
//   RecordItem item = record.into_item<HalfPrecisionSettings>();   // float16, int16: what is saved
//   other.load_record(Record::from_item(item));
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/core/tensor_data.h"
#include "kiln/nn/param_id.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

// Which dtypes an item's numbers have. Floating point tensors become `float_type`, integers wider
// than `int_type` become that; narrower integers and bools stay as they are.
struct PrecisionSettings {
  std::string name;
  DType float_type;
  DType int_type;
};
struct FullPrecisionSettings {
  static PrecisionSettings get() { return {"FullPrecisionSettings", f32, i32}; }
};
struct HalfPrecisionSettings {
  static PrecisionSettings get() { return {"HalfPrecisionSettings", f16, i16}; }
};
struct DoublePrecisionSettings {
  static PrecisionSettings get() { return {"DoublePrecisionSettings", f64, i64}; }
};

using RecordValue = std::variant<bool, int64_t, double, std::string>;
using RecordValues = std::map<std::string, RecordValue, std::less<>>;

// A record in the precision of its settings, in host memory.
struct RecordItem {
  struct Entry {
    std::string path;           // "fc1.weight"
    std::optional<ParamId> id;  // parameters have one
    TensorData data;
  };
  PrecisionSettings settings;
  std::vector<Entry> entries;
  RecordValues values;
};

class Record {
 public:
  struct Entry {
    std::string path;
    std::optional<ParamId> id;
    Tensor value;
  };

  // In the order of the module's state dict. Throws ValueError for a path that is there already.
  void add(std::string path, std::optional<ParamId> id, Tensor value);
  const std::vector<Entry>& entries() const { return entries_; }
  // Null when there is none.
  const Entry* find(std::string_view path) const;
  size_t size() const { return entries_.size(); }

  void set_value(std::string_view name, bool value);
  void set_value(std::string_view name, std::integral auto value) {
    set_integer(name, static_cast<int64_t>(value));
  }
  void set_value(std::string_view name, double value);
  void set_value(std::string_view name, std::string_view value);
  void set_value(std::string_view name, const char* value);
  void set_value(std::string_view name, std::same_as<RecordValue> auto value) {
    set(name, std::move(value));
  }
  const RecordValues& values() const { return values_; }
  // Throws ValueError when there is none of that name, or one of another type: double takes
  // integers too.
  template <class T>
  T value(std::string_view name) const;

  // Everything of `other`, its names after "prefix.": model and optimizer in one record.
  void merge(std::string_view prefix, Record other);
  // The part whose names begin with "prefix.", under the rest of their names.
  Record part(std::string_view prefix) const;

  // Throws ValueError, naming the tensor, when a finite number does not fit into the settings'
  // dtype.
  RecordItem into_item(const PrecisionSettings& settings) const;
  template <class Settings>
  RecordItem into_item() const {
    return into_item(Settings::get());
  }
  static Record from_item(const RecordItem& item, const Device& device = {});

 private:
  void set(std::string_view name, RecordValue value);
  void set_integer(std::string_view name, int64_t value);
  const RecordValue& at(std::string_view name) const;

  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> index_;
  RecordValues values_;
};

namespace detail {
[[noreturn]] void throw_wrong_value(std::string_view name, const RecordValue& got,
                                    const char* expected);
}

template <class T>
T Record::value(std::string_view name) const {
  const RecordValue& held = at(name);
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* i = std::get_if<int64_t>(&held)) return static_cast<double>(*i);
  }
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, double> ||
                std::is_same_v<T, bool>) {
    if (const T* value = std::get_if<T>(&held)) return *value;
    detail::throw_wrong_value(name, held,
                              std::is_same_v<T, bool>     ? "a boolean"
                              : std::is_same_v<T, double> ? "a number"
                                                          : "a string");
  } else {
    static_assert(std::is_integral_v<T>, "a record's values are bools, numbers and strings");
    const auto* i = std::get_if<int64_t>(&held);
    if (i == nullptr || !std::in_range<T>(*i))
      detail::throw_wrong_value(name, held, "an integer that fits");
    return static_cast<T>(*i);
  }
}

// Writes items to files and reads them; kiln/io/recorder.h has the formats.
class Recorder {
 public:
  virtual ~Recorder() = default;
  // "mpk.gz", added to a path that does not end in it.
  virtual std::string extension() const = 0;
  virtual PrecisionSettings settings() const = 0;
  // Replaces a file only when the new one is complete. Throws IoError.
  virtual void record(const RecordItem& item, const std::string& path) const = 0;
  // Throws IoError for a file that is missing, malformed or not of this format.
  virtual RecordItem load(const std::string& path) const = 0;

  // The same with records.
  void record(const Record& record, const std::string& path) const;
  Record load_record(const std::string& path, const Device& device = {}) const;
};

}  // namespace kiln::nn
