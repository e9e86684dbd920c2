#include "kiln/backend/conformance/cases.h"

#include <algorithm>
#include <numeric>

#include "kiln/backend/random_fill.h"

namespace kiln::conformance {

Operand CaseList::uniform(const Shape& shape, DType dtype, double low, double high) {
  if (kind_of(dtype) == Kind::integer) {
    return integers(shape, dtype, static_cast<int64_t>(low), static_cast<int64_t>(high));
  }
  TensorData data(shape, dtype);
  host::fill_random(data, Distribution::uniform(low, high), RandomStream{++draws_, 0});
  return {data};
}

Operand CaseList::integers(const Shape& shape, DType dtype, int64_t low, int64_t high) {
  TensorData data(shape, dtype);
  host::fill_random(data, Distribution::integers(low, high + 1), RandomStream{++draws_, 0});
  return {data};
}

Operand CaseList::booleans(const Shape& shape) {
  TensorData data(shape, DType::boolean);
  host::fill_random(data, Distribution::bernoulli(0.5), RandomStream{++draws_, 0});
  return {data};
}

Operand CaseList::distinct_indices(const Shape& shape, int dim, int64_t size) {
  TensorData data(shape, DType::i64);
  const auto out = data.as_mutable<int64_t>();
  const RandomStream stream{++draws_, 0};
  // A step that shares no factor with `size` visits every index before any twice.
  const int64_t step = size % 3 == 0 ? (size % 2 == 0 ? 1 : 2) : 3;
  int64_t inner = 1;
  for (int d = dim + 1; d < shape.rank(); ++d) inner *= shape[d];
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t place = static_cast<int64_t>(i) / inner % shape[dim];
    const int64_t row =
        static_cast<int64_t>(i) % inner + static_cast<int64_t>(i) / (inner * shape[dim]) * inner;
    const int64_t start = stream.block(static_cast<uint64_t>(row))[0] % 1000;
    out[i] = (start + place * step) % size;
  }
  return {data};
}

Operand values(const std::vector<double>& numbers, const Shape& shape, DType dtype) {
  return {TensorData(numbers, shape).cast(dtype)};
}
Operand values(const std::vector<double>& numbers, DType dtype) {
  return values(numbers, Shape{static_cast<int64_t>(numbers.size())}, dtype);
}
Operand int_values(const std::vector<int64_t>& numbers, const Shape& shape, DType dtype) {
  return {TensorData(numbers, shape).cast(dtype)};
}
Operand int_values(const std::vector<int64_t>& numbers, DType dtype) {
  return int_values(numbers, Shape{static_cast<int64_t>(numbers.size())}, dtype);
}
Operand bool_values(const std::vector<int>& numbers, const Shape& shape) {
  return {TensorData(numbers, shape).cast(DType::boolean)};
}

int64_t lowest_of(DType dtype) {
  return visit_int("lowest", dtype,
                   []<class T>() { return static_cast<int64_t>(std::numeric_limits<T>::min()); });
}
int64_t highest_of(DType dtype) {
  return visit_int("highest", dtype,
                   []<class T>() { return static_cast<int64_t>(std::numeric_limits<T>::max()); });
}

void for_each_case(const std::vector<DType>& float_dtypes, const std::vector<DType>& int_dtypes,
                   const std::function<void(const Case&)>& fn) {
  CaseList list(float_dtypes, int_dtypes);
  // New families come last, so that the others keep the numbers that they draw.
  for (const auto add_family :
       {add_data_cases,      add_shape_cases,     add_index_cases,         add_float_cases,
        add_compare_cases,   add_int_cases,       add_bool_cases,          add_reduce_cases,
        add_scan_cases,      add_sort_cases,      add_product_cases,       add_transform_cases,
        add_complex_cases,   add_image_cases,     add_activation_cases,    add_window_cases,
        add_norm_cases,      add_attention_cases, add_training_cases,      add_coded_cases,
        add_quantized_cases, add_function_cases,  add_recurrence_cases,    add_sparse_cases,
        add_block_cases,     add_pad_cases,       add_recurrent_cell_cases}) {
    add_family(list);
    for (const Case& c : list.cases) fn(c);
    list.cases.clear();
  }
}

namespace {

struct Describe {
  static std::string operand(const Operand& x) {
    return concat(x.data.dtype(), " ", x.data.shape());
  }
  static std::string of_convolution(const auto& x) {
    return concat("stride ", Shape(x.stride), " padding ", Shape(x.padding), " dilation ",
                  Shape(x.dilation), " groups ", x.groups);
  }
  std::string operator()(const Operand& x) const { return operand(x); }
  std::string operator()(const OperandList& xs) const {
    std::string out = "{";
    for (const Operand& x : xs) out += (out.size() > 1 ? ", " : "") + operand(x);
    return out + "}";
  }
  std::string operator()(const HostData& x) const { return operand({x.data}); }
  std::string operator()(const Absent&) const { return "none"; }
  std::string operator()(const Shape& x) const { return to_string(x); }
  std::string operator()(const Scalar& x) const { return concat(x.to_double()); }
  std::string operator()(DType x) const { return to_string(x); }
  std::string operator()(const Range& x) const { return concat(x.start, ":", x.end, ":", x.step); }
  std::string operator()(bool x) const { return concat(x); }
  std::string operator()(int x) const { return concat(x); }
  std::string operator()(int64_t x) const { return concat(x); }
  std::string operator()(double x) const { return concat(x); }
  std::string operator()(const ConvOptions& x) const { return of_convolution(x); }
  std::string operator()(const Conv3dOptions& x) const { return of_convolution(x); }
  std::string operator()(const PoolOptions& x) const {
    return concat("kernel ", Shape(x.kernel), " stride ", Shape(x.stride), " padding ",
                  Shape(x.padding), " dilation ", Shape(x.dilation), x.ceil_mode ? " ceil" : "",
                  x.count_include_pad ? "" : " without padding");
  }
  std::string operator()(ScatterReduction x) const {
    return x == ScatterReduction::prod ? "prod" : x == ScatterReduction::amax ? "amax" : "amin";
  }
  std::string operator()(Activation x) const {
    constexpr const char* kNames[] = {"none", "relu",    "gelu",  "gelu_tanh", "silu",
                                      "tanh", "sigmoid", "relu6", "hardswish", "hardsigmoid"};
    return kNames[static_cast<size_t>(x)];
  }
  std::string operator()(const AttentionOptions& x) const {
    return concat("scale ", x.scale, x.causal ? " causal" : "", " dropout ", x.dropout);
  }
  std::string operator()(const RecurrenceOptions& x) const {
    constexpr const char* kNames[] = {"tanh", "relu", "gru", "lstm"};
    return concat(kNames[static_cast<size_t>(x.cell)], x.reverse ? " reverse" : "",
                  x.saves ? "" : " saves nothing", " steps ", x.batch_sizes.size());
  }
  template <class T>
  std::string operator()(const T&) const {
    return "..";
  }
};

}  // namespace

std::string describe(const Case& c) {
  std::string out = c.op + "(";
  for (size_t i = 0; i < c.arguments.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::visit(Describe{}, c.arguments[i]);
  }
  return out + ")";
}

}  // namespace kiln::conformance
