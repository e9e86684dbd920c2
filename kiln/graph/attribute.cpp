#include "kiln/graph/attribute.h"

#include <charconv>

#include "kiln/core/error.h"

namespace kiln::graph {

namespace {

// The shortest text that is this number again: equal texts are equal numbers.
std::string exact(double v) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, v).ptr;
  return std::string(text, end);
}
std::string exact(bool v) { return v ? "true" : "false"; }
std::string exact(int v) { return std::to_string(v); }
std::string exact(int64_t v) { return std::to_string(v); }
std::string exact(const IntPair& v) { return concat("[", v[0], ", ", v[1], "]"); }
std::string exact(const IntTriple& v) { return concat("[", v[0], ", ", v[1], ", ", v[2], "]"); }

template <class Enum>
  requires std::is_enum_v<Enum>
std::string exact(Enum v) {
  return std::to_string(static_cast<int>(v));
}

// "name(a, b)".
template <class... T>
std::string called(const std::string& name, const T&... parts) {
  std::string out;
  ((out += (out.empty() ? "" : ", ") + exact(parts)), ...);
  return name + "(" + out + ")";
}

const char* const kIntFunctions[] = {
#define KILN_INT_FUNCTION(type, ...) #type,
#include "kiln/backend/functions.def"
};
const char* const kActivations[] = {"none", "relu",    "gelu",  "gelu_tanh", "silu",
                                    "tanh", "sigmoid", "relu6", "hardswish", "hardsigmoid"};
const char* const kReductions[] = {"prod", "amax", "amin"};
const char* const kEdges[] = {"reflect", "replicate", "circular"};
const char* const kDistributions[] = {"uniform", "normal", "bernoulli", "exponential", "integers"};
const char* const kCells[] = {"tanh", "relu", "gru", "lstm"};
const char* const kSteps[] = {"sgd",   "adam",  "adagrad", "adadelta", "rmsprop", "adamax",
                              "nadam", "radam", "rprop",   "asgd",     "lion",    "adan"};
static_assert(std::size(kSteps) == std::variant_size_v<OptimizerStep>);

template <class Enum, size_t kCount>
std::string named(Enum v, const char* const (&names)[kCount]) {
  const auto i = static_cast<size_t>(v);
  return i < kCount ? names[i] : "?";
}

struct Text {
  std::string operator()(bool v) const { return exact(v); }
  std::string operator()(int v) const { return exact(v); }
  std::string operator()(int64_t v) const { return exact(v); }
  std::string operator()(double v) const { return exact(v); }
  std::string operator()(const Scalar& v) const {
    return v.is_floating_point() ? exact(v.to_double())
           : v.is_bool()         ? exact(v.to_bool())
                                 : exact(v.to_int());
  }
  std::string operator()(DType v) const { return concat(v); }
  std::string operator()(Device v) const { return concat(v); }
  std::string operator()(const Shape& v) const { return kiln::to_string(v); }
  std::string operator()(const Range& v) const {
    return concat(v.start, ":", v.end, v.step == 1 ? "" : ":" + std::to_string(v.step));
  }
  std::string operator()(const TensorData& v) const {
    std::string out = concat("data ", v.dtype(), " ", v.shape());
    if (v.numel() == 1) out += " = " + exact(v.item(0));
    return out;
  }
  std::string operator()(const Distribution& v) const {
    return called(named(v.type, kDistributions), v.a, v.b);
  }
  std::string operator()(const RandomStream& v) const {
    return concat("random(generator ", v.generator, ", ", v.seed, " + ", v.offset, ")");
  }
  std::string operator()(const UnaryFunction& v) const {
    return called(name_of(v.type), v.a, v.b, v.c);
  }
  std::string operator()(const BinaryFunction& v) const {
    return called(name_of(v.type), v.a, v.b, v.c);
  }
  std::string operator()(const TernaryFunction& v) const {
    return called(name_of(v.type), v.value, v.divisor);
  }
  std::string operator()(ComplexFunction v) const { return name_of(v); }
  std::string operator()(IntFunction v) const { return named(v, kIntFunctions); }
  std::string operator()(Activation v) const { return named(v, kActivations); }
  std::string operator()(ScatterReduction v) const { return named(v, kReductions); }
  std::string operator()(EdgeMode v) const { return named(v, kEdges); }
  std::string operator()(const ConvOptions& v) const {
    return called("conv", v.stride, v.padding, v.dilation, v.groups);
  }
  std::string operator()(const Conv3dOptions& v) const {
    return called("conv3d", v.stride, v.padding, v.dilation, v.groups);
  }
  std::string operator()(const PoolOptions& v) const {
    return called("pool", v.kernel, v.stride, v.padding, v.dilation, v.ceil_mode,
                  v.count_include_pad);
  }
  std::string operator()(const GridOptions& v) const {
    return called("grid", v.outside, v.between, v.align_corners, v.normalized);
  }
  std::string operator()(const DimMaps& v) const {
    std::string out = "maps(";
    for (const DimMap& m : *v) out += concat(" dim ", m.dim, ": ", m.map.in, " to ", m.map.out);
    return out + " )";
  }
  std::string operator()(const CrossEntropyOptions& v) const {
    return called("cross_entropy", v.ignore_index, v.label_smoothing);
  }
  std::string operator()(const AttentionOptions& v) const {
    return called("attention", v.scale, v.causal, v.dropout) +
           (v.dropout > 0 ? " " + (*this)(v.stream) : "");
  }
  std::string operator()(const RecurrenceOptions& v) const {
    std::string steps;
    for (const int64_t n : v.batch_sizes) steps += " " + exact(n);
    return called(named(v.cell, kCells), v.reverse, v.saves) + " steps of" + steps;
  }
  std::string operator()(const OptimizerStep& v) const {
    return concat(kSteps[v.index()], " step");
  }
  std::string operator()(const AdamW8bitStep& v) const {
    return called("adamw_8bit", v.lr, v.step, v.block);
  }
  std::string operator()(const QuantScheme& v) const {
    return called("scheme", v.scale, v.bits, v.level, v.block, v.activations);
  }
};

}  // namespace

std::string to_string(const Attribute& attribute) { return std::visit(Text(), attribute); }

bool are_equal(const Attribute& a, const Attribute& b) {
  if (a.index() != b.index() || std::holds_alternative<OptimizerStep>(a)) return false;
  if (const auto* data = std::get_if<TensorData>(&a)) {
    const auto& other = std::get<TensorData>(b);
    return data->data() == other.data() && data->shape() == other.shape() &&
           data->dtype() == other.dtype();
  }
  if (const auto* maps = std::get_if<DimMaps>(&a)) return *maps == std::get<DimMaps>(b);
  if (const auto* number = std::get_if<Scalar>(&a)) {
    if (number->kind() != std::get<Scalar>(b).kind()) return false;
  }
  return to_string(a) == to_string(b);
}

}  // namespace kiln::graph
