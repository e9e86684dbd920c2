#include "kiln/onnx/read/call.h"

#include <cstring>

#include "kiln/core/utf8.h"
#include "kiln/graph/capture.h"
#include "kiln/onnx/read/program.h"

namespace kiln::onnx {

DType dtype_of_number(int64_t data_type) {
  switch (data_type) {
    case 1:
      return DType::f32;
    case 2:
      return DType::u8;
    case 3:
      return DType::i8;
    case 5:
      return DType::i16;
    case 6:
      return DType::i32;
    case 7:
      return DType::i64;
    case 9:
      return DType::boolean;
    case 10:
      return DType::f16;
    case 11:
      return DType::f64;
    case 16:
      return DType::bf16;
    default:
      throw_error<NotImplementedError>(
          "Kiln has no dtype for ONNX's type ", data_type,
          "; expected float, double, float16, bfloat16, int8 to int64, "
          "uint8 or bool");
  }
}

namespace {

template <class T>
Tensor from_numbers(const std::vector<T>& values, const Shape& shape, DType dtype) {
  return Tensor(TensorData(values, shape).cast(dtype));
}

}  // namespace

Tensor tensor_of(const wire::Tensor& t) {
  const DType dtype = dtype_of_number(t.data_type);
  if (t.dims.size() > static_cast<size_t>(kMaxRank)) {
    throw_error<ValueError>("a tensor of ", t.dims.size(), " dims; expected at most ", kMaxRank);
  }
  if (t.data_location != 0 || !t.external_data.empty()) {
    throw_error<ValueError>("a tensor whose values are in another file");
  }
  const Shape shape(t.dims);
  int64_t count = 1;
  for (const int64_t d : shape) {
    if (d < 0 || (d != 0 && count > (int64_t{1} << 40) / d)) {
      throw_error<ValueError>("a tensor of shape ", shape);
    }
    count *= d;
  }
  const auto n = static_cast<size_t>(count);
  const auto check = [&](size_t there) {
    if (there != n) {
      throw_error<ValueError>("a tensor of shape ", shape, " with ", there, " values; expected ",
                              n);
    }
  };
  if (!t.raw_data.empty() || n == 0) {
    if (t.raw_data.size() != n * size_of(dtype)) check(t.raw_data.size() / size_of(dtype));
    if (t.raw_data.size() != n * size_of(dtype)) throw_error<ValueError>("values that are cut off");
    TensorData data(shape, dtype);
    if (n != 0) std::memcpy(data.mutable_data(), t.raw_data.data(), t.raw_data.size());
    if (dtype == DType::boolean) {  // any byte may stand there
      for (size_t i = 0; i < n; ++i) {
        data.mutable_data()[i] = static_cast<std::byte>(t.raw_data[i] != 0);
      }
    }
    return Tensor(data);
  }
  switch (dtype) {
    case DType::f32:
      check(t.float_data.size());
      return from_numbers(t.float_data, shape, dtype);
    case DType::f64:
      check(t.double_data.size());
      return from_numbers(t.double_data, shape, dtype);
    case DType::i64:
      check(t.int64_data.size());
      return from_numbers(t.int64_data, shape, dtype);
    case DType::f16:
    case DType::bf16: {  // their bits
      check(t.int32_data.size());
      TensorData data(shape, dtype);
      for (size_t i = 0; i < n; ++i) {
        const auto bits = static_cast<uint16_t>(t.int32_data[i]);
        std::memcpy(data.mutable_data() + 2 * i, &bits, 2);
      }
      return Tensor(data);
    }
    default:
      check(t.int32_data.size());
      return from_numbers(t.int32_data, shape, dtype);
  }
}

Call::Call(const Step& step, Frame& frame)
    : step_(step), frame_(frame), outputs_(step.outputs.size()) {
  for (const int slot : step.inputs) {
    const Value* value = slot < 0 ? nullptr : &frame[slot];
    inputs_.push_back(value != nullptr && value->is_there() ? value : nullptr);
  }
}

const char* Call::name() const { return step_.op->name; }
int Call::version() const { return step_.version; }

const Tensor& Call::in(size_t i) const {
  if (!has(i)) fail(concat("input ", i, " is absent; expected a tensor"));
  if (!inputs_[i]->tensor.defined()) fail(concat("input ", i, " is a sequence; expected a tensor"));
  return inputs_[i]->tensor;
}
const TensorList& Call::sequence(size_t i) const {
  if (!has(i) || inputs_[i]->sequence == nullptr) fail(concat("input ", i, " is no sequence"));
  return *inputs_[i]->sequence;
}

std::vector<int64_t> Call::integers(size_t i) const {
  const Tensor& x = in(i);
  if (inputs_[i]->fixed) {
    const graph::PauseCapture pause;
    return x.detach().to_vector<int64_t>();
  }
  return x.detach().to_vector<int64_t>();
}
std::vector<double> Call::numbers(size_t i) const {
  const Tensor& x = in(i);
  if (inputs_[i]->fixed) {
    const graph::PauseCapture pause;
    return x.detach().to_vector<double>();
  }
  return x.detach().to_vector<double>();
}
double Call::number(size_t i) const {
  const std::vector<double> all = numbers(i);
  if (all.size() != 1) fail(concat("input ", i, " has ", all.size(), " values; expected one"));
  return all[0];
}

void Call::out(Tensor x, size_t i) {
  if (i < outputs_.size()) outputs_[i].tensor = std::move(x);
}
void Call::out_sequence(TensorList xs, size_t i) {
  if (i < outputs_.size()) {
    outputs_[i].sequence = std::make_shared<const TensorList>(std::move(xs));
  }
}
void Call::out_value(Value x, size_t i) {
  if (i < outputs_.size()) outputs_[i] = std::move(x);
}

const Block* Call::block(const char* name) const {
  for (const auto& [attribute, inside] : step_.blocks) {
    if (attribute == name) return inside.get();
  }
  return nullptr;
}
Values Call::run(const char* name, Values inputs) {
  const Block* inside = block(name);
  if (inside == nullptr) fail(concat("expected the graph ", name));
  constexpr int64_t kMostRuns = int64_t{1} << 20;
  if (++frame_.inner_runs > kMostRuns) fail(concat("it goes on after ", kMostRuns, " iterations"));
  if (inputs.size() != inside->inputs.size()) {
    fail(concat("the graph ", name, " has ", inside->inputs.size(), " inputs; expected ",
                inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    frame_[inside->inputs[i]] = std::move(inputs[i]);
  }
  run_block(*inside, frame_);
  Values out;
  for (const int slot : inside->outputs) {
    out.push_back(slot < 0 ? Value{.fixed = true} : frame_[slot]);
  }
  return out;
}
size_t Call::graph_inputs(const char* name) const {
  const Block* inside = block(name);
  return inside == nullptr ? 0 : inside->inputs.size();
}
size_t Call::graph_outputs(const char* name) const {
  const Block* inside = block(name);
  return inside == nullptr ? 0 : inside->outputs.size();
}
Tensor Call::nothing_like(const char* name, size_t output) const {
  const Block* inside = block(name);
  const wire::ValueInfo& info = *inside->declared.at(output);
  if (info.type.empty() || info.type[0].tensor_type.empty()) refuse("no steps, and no dtype");
  const wire::TensorType& type = info.type[0].tensor_type[0];
  Shape shape{0};
  if (!type.shape.empty()) {
    for (const wire::Dimension& d : type.shape[0].dim) {
      if (shape.rank() == kMaxRank || d.value < 0) fail("a graph that declares no legal shape");
      shape.push_back(d.value);
    }
  }
  return zeros(shape, {.dtype = dtype_of_number(type.elem_type)});
}
bool Call::truth(const Value& x) const {
  if (!x.tensor.defined() || x.tensor.numel() != 1) fail("expected a condition of one element");
  std::optional<graph::PauseCapture> pause;
  if (x.fixed) pause.emplace();
  return x.tensor.detach().to_vector<double>()[0] != 0.0;
}

const wire::Attribute* Call::attribute(const char* name) const {
  for (const wire::Attribute& a : step_.node->attribute) {
    if (a.name == name) return &a;
  }
  return nullptr;
}
int64_t Call::i(const char* name, int64_t otherwise) const {
  const auto* a = attribute(name);
  return a == nullptr ? otherwise : a->i;
}
double Call::f(const char* name, double otherwise) const {
  const auto* a = attribute(name);
  return a == nullptr ? otherwise : static_cast<double>(a->f);
}
std::string Call::s(const char* name, const char* otherwise) const {
  const auto* a = attribute(name);
  return a == nullptr ? otherwise : a->s;
}
std::vector<int64_t> Call::ints(const char* name) const {
  const auto* a = attribute(name);
  return a == nullptr ? std::vector<int64_t>{} : a->ints;
}
std::optional<std::vector<int64_t>> Call::ints_or_input(const char* name, size_t i) const {
  if (const auto* a = attribute(name)) return a->ints;
  if (has(i)) return integers(i);
  return std::nullopt;
}

int64_t Call::axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) {
    fail(concat("axis ", axis, " of a tensor of ", rank, " dims"));
  }
  return axis < 0 ? axis + rank : axis;
}

void Call::refuse(const std::string& what) const { throw_error<NotImplementedError>(what); }
void Call::fail(const std::string& what) const { throw_error<ValueError>(what); }

}  // namespace kiln::onnx
