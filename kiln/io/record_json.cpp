#include "kiln/io/record_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "kiln/core/error.h"
#include "kiln/core/from_chars.h"
#include "kiln/io/input_file.h"

namespace kiln::io::detail {
namespace {

constexpr const char* kFormat = "kiln.record";

// ---- Reading with checks

[[noreturn]] void malformed(const std::string& where, const std::string& what,
                            const std::string& got, const std::string& expected) {
  throw_error<IoError>(where, " is malformed: ", what, "; got ", got, "; expected ", expected);
}

const Json& member(const Json& object, const char* name, const std::string& where,
                   const std::string& of) {
  const Json* found = object.find(name);
  if (found == nullptr)
    malformed(where, concat(of, " lacks '", name, "'"), object.describe(), "one");
  return *found;
}

template <class T>
const T& member_as(const Json& object, const char* name, const std::string& where,
                   const std::string& of, const char* expected) {
  const Json& value = member(object, name, where, of);
  const T* typed = value.as<T>();
  if (typed == nullptr) {
    malformed(where, concat(of, " has a wrong '", name, "'"), printable(value.describe()),
              expected);
  }
  return *typed;
}

DType stored_dtype(const std::string& name, const std::string& where, const std::string& of) {
  try {
    const DType dtype = parse_dtype(name);
    if (is_floating_point(dtype) || is_integral(dtype) || dtype == DType::boolean) return dtype;
  } catch (const DTypeError&) {
  }
  malformed(where, concat(of, " has an unknown dtype"), concat("'", printable(name, 20), "'"),
            "float32, int64, bool, ...");
}

Shape stored_shape(const Json::Array& dims, const std::string& where, const std::string& of) {
  if (dims.size() > static_cast<size_t>(kMaxRank)) {
    malformed(where, concat(of, " has too many dims"), concat(dims.size()),
              concat("at most ", kMaxRank));
  }
  Shape shape;
  int64_t numel = 1;
  for (const Json& dim : dims) {
    const int64_t* n = dim.as<int64_t>();
    if (n == nullptr || *n < 0)
      malformed(where, concat(of, " has a bad dim"), printable(dim.describe()), "sizes >= 0");
    if (__builtin_mul_overflow(numel, std::max<int64_t>(*n, 1), &numel) ||
        numel > (int64_t{1} << 59)) {
      malformed(where, concat(of, " has a size that overflows"), "a huge shape",
                "fewer than 2^59 elements");
    }
    shape.push_back(*n);
  }
  return shape;
}

void check_count(size_t got, size_t expected, const char* unit, const Shape& shape, DType dtype,
                 const std::string& where, const std::string& of) {
  if (got != expected) {
    malformed(where, concat(of, " of shape ", shape, " and dtype ", dtype, " has another size"),
              concat(got, ' ', unit), concat(expected, ' ', unit));
  }
}

TensorData from_bytes(const Json::Bytes& bytes, const Shape& shape, DType dtype,
                      const std::string& where, const std::string& of) {
  check_count(bytes.size(), static_cast<size_t>(shape.numel()) * size_of(dtype), "bytes", shape,
              dtype, where, of);
  if (dtype == DType::boolean) {
    for (const std::byte b : bytes) {
      if (b > std::byte{1})
        malformed(where, concat(of, " has a bad boolean"), concat(static_cast<int>(b)), "0 or 1");
    }
  }
  TensorData data(shape, dtype);
  if (!bytes.empty()) std::memcpy(data.mutable_data(), bytes.data(), bytes.size());
  return data;
}

double number_of(const Json& value, const std::string& where, const std::string& of) {
  if (const double* d = value.as<double>()) return *d;
  if (const int64_t* i = value.as<int64_t>()) return static_cast<double>(*i);
  if (const std::string* s = value.as<std::string>()) {
    if (*s == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (*s == "inf") return std::numeric_limits<double>::infinity();
    if (*s == "-inf") return -std::numeric_limits<double>::infinity();
  }
  malformed(where, concat(of, " has a bad value"), printable(value.describe()),
            "a number, 'nan', 'inf' or '-inf'");
}

TensorData from_values(const Json::Array& values, const Shape& shape, DType dtype,
                       const std::string& where, const std::string& of) {
  check_count(values.size(), static_cast<size_t>(shape.numel()), "values", shape, dtype, where, of);
  const auto wrong = [&](const Json& value, const char* expected) {
    malformed(where, concat(of, " has a bad value"), printable(value.describe()), expected);
  };
  TensorData data(shape, dtype);
  visit_dtype("load_record", dtype, [&]<class T>() {
    auto out = data.as_mutable<T>();
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        const bool* b = values[i].as<bool>();
        if (b == nullptr) wrong(values[i], "true or false");
        out[i] = *b;
      } else if constexpr (std::is_integral_v<T>) {
        const int64_t* n = values[i].as<int64_t>();
        if (n == nullptr || !std::in_range<T>(*n)) wrong(values[i], "an integer of the dtype");
        out[i] = static_cast<T>(*n);
      } else {
        out[i] = static_cast<T>(static_cast<float>(number_of(values[i], where, of)));
        if constexpr (std::is_same_v<T, double>) out[i] = number_of(values[i], where, of);
      }
    }
  });
  return data;
}

// ---- Writing

// The double with the fewest digits that is read back as this float: 0.1 and not
// 0.10000000149011612.
double short_double(float value) {
  if (!std::isfinite(value)) return value;
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double out = 0.0;
  kiln::detail::from_chars(text, end, out);
  return out;
}

Json data_values(const TensorData& data) {
  Json::Array out;
  out.reserve(static_cast<size_t>(data.numel()));
  visit_dtype("record", data.dtype(), [&]<class T>() {
    for (const T value : data.as<T>()) {
      if constexpr (std::is_same_v<T, bool>) {
        out.emplace_back(static_cast<bool>(value));
      } else if constexpr (std::is_integral_v<T>) {
        out.emplace_back(static_cast<int64_t>(value));
      } else if constexpr (std::is_same_v<T, double>) {
        out.emplace_back(value);
      } else {
        out.emplace_back(short_double(static_cast<float>(value)));
      }
    }
  });
  return out;
}

Json data_bytes(const TensorData& data) {
  return Json::Bytes(data.data(), data.data() + data.bytes());
}

}  // namespace

Json values_to_json(const nn::RecordValues& values) {
  Json out = Json::Object();
  for (const auto& [name, value] : values) {
    out.add(name, std::visit([](const auto& held) { return Json(held); }, value));
  }
  return out;
}

nn::RecordValues values_from_json(const Json& json, const std::string& where) {
  const auto* members = json.as<Json::Object>();
  if (members == nullptr)
    malformed(where, "'values' is no object", printable(json.describe()), "one");
  nn::RecordValues out;
  for (const auto& [name, value] : *members) {
    if (const bool* b = value.as<bool>()) {
      out[name] = *b;
    } else if (const int64_t* i = value.as<int64_t>()) {
      out[name] = *i;
    } else if (const double* d = value.as<double>()) {
      out[name] = *d;
    } else if (const std::string* s = value.as<std::string>()) {
      out[name] = *s;
    } else {
      malformed(where, concat("the value '", printable(name), "' has a wrong type"),
                printable(value.describe()), "a boolean, a number or a string");
    }
  }
  return out;
}

nn::PrecisionSettings parse_settings(const std::string& name, const std::string& float_type,
                                     const std::string& int_type, const std::string& where) {
  nn::PrecisionSettings out{name, stored_dtype(float_type, where, "the metadata"),
                            stored_dtype(int_type, where, "the metadata")};
  if (!is_floating_point(out.float_type)) {
    malformed(where, "the metadata's float type is none", float_type, "a floating point dtype");
  }
  if (!is_integral(out.int_type)) {
    malformed(where, "the metadata's int type is none", int_type, "an integer dtype");
  }
  return out;
}

Json record_to_json(const nn::RecordItem& item, bool text) {
  Json tensors = Json::Array();
  for (const nn::RecordItem::Entry& entry : item.entries) {
    Json tensor;
    tensor.add("name", entry.path);
    if (entry.id) tensor.add("id", to_string(*entry.id));
    tensor.add("dtype", to_string(entry.data.dtype()));
    Json shape = Json::Array();
    for (const int64_t n : entry.data.shape()) shape.add(n);
    tensor.add("shape", std::move(shape));
    if (text) {
      tensor.add("values", data_values(entry.data));
    } else {
      tensor.add("bytes", data_bytes(entry.data));
    }
    tensors.add(std::move(tensor));
  }
  Json metadata;
  metadata.add("format", kFormat);
  metadata.add("record_version", kRecordVersion);
  metadata.add("kiln_version", KILN_VERSION);
  metadata.add("settings", item.settings.name);
  metadata.add("float", to_string(item.settings.float_type));
  metadata.add("int", to_string(item.settings.int_type));
  Json out;
  out.add("metadata", std::move(metadata));
  out.add("tensors", std::move(tensors));
  out.add("values", values_to_json(item.values));
  return out;
}

nn::RecordItem record_from_json(const Json& json, const std::string& where, Budget& budget) {
  const std::string top = "the record";
  const std::string of_metadata = "the metadata";
  const Json& metadata = member(json, "metadata", where, top);
  const auto text = [&](const char* name) -> const std::string& {
    return member_as<std::string>(metadata, name, where, of_metadata, "a string");
  };
  if (text("format") != kFormat) {
    malformed(where, "it is no record of Kiln",
              concat("format '", printable(text("format"), 40), "'"), kFormat);
  }
  const int64_t version =
      member_as<int64_t>(metadata, "record_version", where, of_metadata, "a number");
  if (version < 1 || version > kRecordVersion) {
    throw_error<IoError>(where, " was written by kiln ", printable(text("kiln_version"), 40),
                         " in another layout; got record version ", version, "; expected at most ",
                         kRecordVersion);
  }
  nn::RecordItem item;
  item.settings = parse_settings(text("settings"), text("float"), text("int"), where);
  std::set<std::string> names;
  for (const Json& tensor : member_as<Json::Array>(json, "tensors", where, top, "a list")) {
    nn::RecordItem::Entry entry;
    entry.path = member_as<std::string>(tensor, "name", where, "a tensor", "a string");
    const std::string of = concat("tensor '", printable(entry.path), "'");
    if (!names.insert(entry.path).second) {
      malformed(where, "a name appears twice", of, "distinct names");
    }
    if (tensor.find("id") != nullptr) {
      try {
        entry.id = nn::ParamId::parse(member_as<std::string>(tensor, "id", where, of, "a string"));
      } catch (const ValueError& error) {
        malformed(where, concat(of, " has a bad id"), printable(error.what()), "a parameter's id");
      }
    }
    const DType dtype =
        stored_dtype(member_as<std::string>(tensor, "dtype", where, of, "a string"), where, of);
    const Shape shape =
        stored_shape(member_as<Json::Array>(tensor, "shape", where, of, "a list"), where, of);
    if (is_floating_point(dtype) && dtype != item.settings.float_type) {
      malformed(where, concat(of, " has another dtype than the metadata says"), to_string(dtype),
                to_string(item.settings.float_type));
    }
    // Of the entry, its name in the set above, and what becomes of both.
    budget.charge(sizeof(entry) + 1024 + 4 * entry.path.size(), "a tensor");
    if (tensor.find("bytes") != nullptr) {
      const auto& bytes = member_as<Json::Bytes>(tensor, "bytes", where, of, "bytes");
      budget.charge(bytes.size(), "a tensor");
      entry.data = from_bytes(bytes, shape, dtype, where, of);
    } else {
      const auto& values = member_as<Json::Array>(tensor, "values", where, of, "a list");
      budget.charge(values.size() * size_of(dtype), "a tensor");
      entry.data = from_values(values, shape, dtype, where, of);
    }
    item.entries.push_back(std::move(entry));
  }
  item.values = values_from_json(member(json, "values", where, top), where);
  return item;
}

}  // namespace kiln::io::detail
