#include "kiln/onnx/read/call.h"

#include <cstring>

#include "kiln/core/utf8.h"
#include "kiln/graph/capture.h"

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
    throw_error<NotImplementedError>("a tensor whose values are in another file");
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

const Tensor& Call::in(size_t i) const {
  if (!has(i)) fail(concat("input ", i, " is absent; expected a tensor"));
  return inputs_[i]->tensor;
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
  if (i < outputs_.size()) outputs_[i] = std::move(x);
}

const wire::Attribute* Call::attribute(const char* name) const {
  for (const wire::Attribute& a : node_.attribute) {
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
