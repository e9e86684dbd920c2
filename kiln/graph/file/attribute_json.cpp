#include "kiln/graph/file/attribute_json.h"

#include <cmath>
#include <limits>
#include <optional>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"

namespace kiln::graph {

namespace {

[[noreturn]] void refuse(const Json& got, const char* expected) {
  throw_error<ValueError>("got ", got.describe(), "; expected ", expected);
}

// ---- Names of enumerators: a file stays readable when an enumeration grows

const char* const kUnary[] = {
#define KILN_UNARY_FUNCTION(type, ...) #type,
#include "kiln/backend/functions.def"
};
const char* const kBinary[] = {
#define KILN_BINARY_FUNCTION(type, ...) #type,
#include "kiln/backend/functions.def"
};
const char* const kTernary[] = {
#define KILN_TERNARY_FUNCTION(type, ...) #type,
#include "kiln/backend/functions.def"
};
const char* const kComplex[] = {
#define KILN_COMPLEX_FUNCTION(type) #type,
#include "kiln/backend/functions.def"
};
const char* const kInteger[] = {
#define KILN_INT_FUNCTION(type) #type,
#include "kiln/backend/functions.def"
};
const char* const kActivation[] = {"none", "relu",    "gelu",  "gelu_tanh", "silu",
                                   "tanh", "sigmoid", "relu6", "hardswish", "hardsigmoid"};
const char* const kScatter[] = {"prod", "amax", "amin"};
const char* const kEdge[] = {"reflect", "replicate", "circular"};
const char* const kOutside[] = {"zeros", "border", "reflection"};
const char* const kBetween[] = {"nearest", "linear", "cubic"};
const char* const kCell[] = {"tanh", "relu", "gru", "lstm"};
const char* const kLevel[] = {"tensor", "channel", "block"};
const char* const kActivations[] = {"floating", "dynamic"};

std::span<const char* const> names(UnaryFunction::Type) { return kUnary; }
std::span<const char* const> names(BinaryFunction::Type) { return kBinary; }
std::span<const char* const> names(TernaryFunction::Type) { return kTernary; }
std::span<const char* const> names(ComplexFunction) { return kComplex; }
std::span<const char* const> names(IntFunction) { return kInteger; }
std::span<const char* const> names(Activation) { return kActivation; }
std::span<const char* const> names(ScatterReduction) { return kScatter; }
std::span<const char* const> names(EdgeMode) { return kEdge; }
std::span<const char* const> names(GridOutside) { return kOutside; }
std::span<const char* const> names(GridBetween) { return kBetween; }
std::span<const char* const> names(RecurrenceCell) { return kCell; }
std::span<const char* const> names(QuantLevel) { return kLevel; }
std::span<const char* const> names(QuantActivations) { return kActivations; }

// ---- Plain values

Json write(bool v) { return v; }
Json write(int v) { return v; }
Json write(int64_t v) { return v; }
Json write(double v) {  // text has a word for none of these
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return v;
}
template <class Enum>
  requires std::is_enum_v<Enum>
Json write(Enum v) {
  return names(v)[static_cast<size_t>(v)];
}
Json write(DType v) { return name_of(v); }
Json write(const Shape& v) {
  Json::Array out;
  for (const int64_t d : v) out.emplace_back(d);
  return out;
}
template <size_t n>
Json write(const std::array<int64_t, n>& v) {
  Json::Array out;
  for (const int64_t x : v) out.emplace_back(x);
  return out;
}

void read(const Json& json, bool& v) {
  const bool* found = json.as<bool>();
  if (found == nullptr) refuse(json, "true or false");
  v = *found;
}
void read(const Json& json, int64_t& v) { v = integer_of(json); }
void read(const Json& json, int& v) {
  const int64_t wide = integer_of(json);
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) {
    refuse(json, "an integer of 32 bits");
  }
  v = static_cast<int>(wide);
}
void read(const Json& json, double& v) {
  if (const double* number = json.as<double>()) {
    v = *number;
  } else if (const int64_t* integer = json.as<int64_t>()) {
    v = static_cast<double>(*integer);
  } else {
    const std::string* word = json.as<std::string>();
    if (word == nullptr || (*word != "nan" && *word != "inf" && *word != "-inf")) {
      refuse(json, "a number");
    }
    v = *word == "nan"   ? std::numeric_limits<double>::quiet_NaN()
        : *word == "inf" ? std::numeric_limits<double>::infinity()
                         : -std::numeric_limits<double>::infinity();
  }
}
template <class Enum>
  requires std::is_enum_v<Enum>
void read(const Json& json, Enum& v) {
  const std::string* word = json.as<std::string>();
  if (word == nullptr) refuse(json, "a name");
  const auto all = names(Enum{});
  for (size_t i = 0; i < all.size(); ++i) {
    if (*word == all[i]) {
      v = static_cast<Enum>(i);
      return;
    }
  }
  throw_error<ValueError>("got '", printable(*word), "'; expected one of ", all.size(),
                          " names such as '", all[0], "'");
}
void read(const Json& json, DType& v) {
  const std::string* word = json.as<std::string>();
  if (word == nullptr) refuse(json, "the name of a dtype");
  try {
    v = parse_dtype(*word);
  } catch (const DTypeError& error) {
    throw ValueError(error.what());
  }
}
void read(const Json& json, Shape& v) { v = shape_of(json); }
template <size_t n>
void read(const Json& json, std::array<int64_t, n>& v) {
  const auto* items = json.as<Json::Array>();
  if (items == nullptr || items->size() != n) {
    refuse(json, n == 2 ? "two integers" : "three integers");
  }
  for (size_t i = 0; i < n; ++i) v[i] = integer_of((*items)[i]);
}
void read(const Json& json, std::vector<int64_t>& v) {
  const auto* items = json.as<Json::Array>();
  if (items == nullptr) refuse(json, "a list of integers");
  v.clear();
  for (const Json& item : *items) v.push_back(integer_of(item));
}

void read(const Json& json, std::vector<double>& v) {
  const auto* items = json.as<Json::Array>();
  if (items == nullptr) refuse(json, "a list of numbers");
  for (const Json& item : *items) read(item, v.emplace_back());
}

// ---- Values of several parts: a list, in the order of the struct

template <class... T>
Json write_parts(const T&... parts) {
  Json::Array out;
  (out.push_back(write(parts)), ...);
  return out;
}
template <class... T>
void read_parts(const Json& json, T&... parts) {
  const auto* items = json.as<Json::Array>();
  if (items == nullptr || items->size() != sizeof...(T)) {
    throw_error<ValueError>("got ", json.describe(), "; expected a list of ", sizeof...(T));
  }
  size_t i = 0;
  (read((*items)[i++], parts), ...);
}

template <class F>
void each_part(F&& f, auto& v) {
  using T = std::decay_t<decltype(v)>;
  if constexpr (std::is_same_v<T, Range>) {
    f(v.start, v.end, v.step);
  } else if constexpr (std::is_same_v<T, UnaryFunction> || std::is_same_v<T, BinaryFunction>) {
    f(v.type, v.a, v.b, v.c);
  } else if constexpr (std::is_same_v<T, TernaryFunction>) {
    f(v.type, v.value, v.divisor);
  } else if constexpr (std::is_same_v<T, ConvOptions> || std::is_same_v<T, Conv3dOptions>) {
    f(v.stride, v.padding, v.dilation, v.groups);
  } else if constexpr (std::is_same_v<T, PoolOptions>) {
    f(v.kernel, v.stride, v.padding, v.dilation, v.ceil_mode, v.count_include_pad);
  } else if constexpr (std::is_same_v<T, GridOptions>) {
    f(v.outside, v.between, v.align_corners, v.normalized);
  } else if constexpr (std::is_same_v<T, CrossEntropyOptions>) {
    f(v.ignore_index, v.label_smoothing);
  } else if constexpr (std::is_same_v<T, AttentionOptions>) {
    f(v.scale, v.causal);
  } else if constexpr (std::is_same_v<T, QuantScheme>) {
    f(v.scale, v.bits, v.level, v.block, v.activations);
  }
}

template <class T>
constexpr bool has_parts =
    std::is_same_v<T, Range> || std::is_same_v<T, UnaryFunction> ||
    std::is_same_v<T, BinaryFunction> || std::is_same_v<T, TernaryFunction> ||
    std::is_same_v<T, ConvOptions> || std::is_same_v<T, Conv3dOptions> ||
    std::is_same_v<T, PoolOptions> || std::is_same_v<T, GridOptions> ||
    std::is_same_v<T, CrossEntropyOptions> || std::is_same_v<T, AttentionOptions> ||
    std::is_same_v<T, QuantScheme>;

Json write(const Scalar& v) {
  if (v.is_bool()) return v.to_bool();
  if (v.is_integral()) return v.to_int();
  return Json::Array{write(v.to_double())};  // a list of one, so that 2.0 stays a float
}
void read(const Json& json, Scalar& v) {
  if (const bool* flag = json.as<bool>()) {
    v = Scalar(*flag);
  } else if (const int64_t* integer = json.as<int64_t>()) {
    v = Scalar(*integer);
  } else {
    double number = 0.0;
    read_parts(json, number);
    v = Scalar(number);
  }
}

Json write(const RecurrenceOptions& v) {
  Json::Array steps;
  for (const int64_t n : v.batch_sizes) steps.emplace_back(n);
  return Json::Array{write(v.cell), write(v.reverse), Json(std::move(steps))};
}
void read(const Json& json, RecurrenceOptions& v) {
  v.saves = false;
  read_parts(json, v.cell, v.reverse, v.batch_sizes);
}

Json write(const DimMaps& v) {
  Json::Array out;
  for (const DimMap& m : *v) {
    Json::Array first, index, weight;
    for (const int64_t i : m.map.first) first.emplace_back(i);
    for (const int64_t i : m.map.index) index.emplace_back(i);
    for (const double w : m.map.weight) weight.push_back(write(w));
    out.emplace_back(Json::Array{Json(m.dim), Json(m.map.in), Json(std::move(first)),
                                 Json(std::move(index)), Json(std::move(weight))});
  }
  return out;
}
// A map whose parts fit each other, so that it reads nothing but its input.
DimMap map_of(const Json& json) {
  DimMap out{0, LineMap(0)};
  LineMap& map = out.map;
  read_parts(json, out.dim, map.in, map.first, map.index, map.weight);
  const auto taps = static_cast<int64_t>(map.index.size());
  bool fits = map.in >= 0 && !map.first.empty() && map.first.front() == 0 &&
              map.first.back() == taps && map.weight.size() == map.index.size();
  for (size_t i = 1; i < map.first.size(); ++i) fits = fits && map.first[i - 1] <= map.first[i];
  for (const int64_t i : map.index) fits = fits && i >= 0 && i < map.in;
  if (!fits) throw_error<ValueError>("got a map of a dim whose parts do not fit each other");
  map.out = static_cast<int64_t>(map.first.size()) - 1;
  return out;
}
void read(const Json& json, DimMaps& v) {
  const auto* items = json.as<Json::Array>();
  if (items == nullptr) refuse(json, "a list of maps");
  std::vector<DimMap> maps;
  for (const Json& item : *items) maps.push_back(map_of(item));
  v = std::make_shared<const std::vector<DimMap>>(std::move(maps));
}

template <class T>
constexpr bool is_refused = std::is_same_v<T, TensorData> || std::is_same_v<T, Distribution> ||
                            std::is_same_v<T, RandomStream> || std::is_same_v<T, OptimizerStep> ||
                            std::is_same_v<T, AdamW8bitStep>;

template <size_t i>
std::optional<Attribute> try_read(const Json& json, size_t alternative) {
  if constexpr (i == std::variant_size_v<Attribute>) {
    return std::nullopt;
  } else {
    using T = std::variant_alternative_t<i, Attribute>;
    if (alternative != i) return try_read<i + 1>(json, alternative);
    T v{};
    if constexpr (std::is_same_v<T, Device>) {
      return v;  // the host
    } else if constexpr (has_parts<T>) {
      each_part([&](auto&... parts) { read_parts(json, parts...); }, v);
      return v;
    } else if constexpr (!is_refused<T>) {
      read(json, v);
      return v;
    }
    return std::nullopt;
  }
}

template <size_t... i>
constexpr std::array<bool, sizeof...(i)> storable(std::index_sequence<i...>) {
  return {!is_refused<std::variant_alternative_t<i, Attribute>>...};
}

}  // namespace

bool is_storable(size_t alternative) {
  constexpr auto kStorable = storable(std::make_index_sequence<std::variant_size_v<Attribute>>());
  return alternative < kStorable.size() && kStorable[alternative];
}

Json to_json(const Attribute& attribute) {
  return std::visit(
      [&](const auto& v) -> Json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, Device>) {
          return Json();
        } else if constexpr (is_refused<T>) {
          throw_error<ValueError>("a file cannot hold ", to_string(attribute));
        } else if constexpr (has_parts<T>) {
          if constexpr (std::is_same_v<T, AttentionOptions>) {
            if (v.dropout > 0.0) throw_error<ValueError>("a file cannot hold random numbers");
          }
          Json out;
          each_part([&](const auto&... parts) { out = write_parts(parts...); }, v);
          return out;
        } else {
          return write(v);
        }
      },
      attribute);
}

Attribute attribute_of(const Json& json, size_t alternative) {
  std::optional<Attribute> out = try_read<0>(json, alternative);
  if (!out) throw_error<ValueError>("a file cannot hold this kind of argument");
  return *std::move(out);
}

int64_t integer_of(const Json& json) {
  const int64_t* found = json.as<int64_t>();
  if (found == nullptr) refuse(json, "an integer");
  return *found;
}

Shape shape_of(const Json& json) {
  const auto* items = json.as<Json::Array>();
  if (items == nullptr || items->size() > static_cast<size_t>(kMaxRank)) {
    refuse(json, "a list of at most 12 integers");
  }
  Shape out;
  for (const Json& item : *items) out.push_back(integer_of(item));
  return out;
}

}  // namespace kiln::graph
