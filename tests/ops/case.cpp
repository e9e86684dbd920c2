#include "tests/ops/case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace kiln::ops {

namespace {

bool near_kink(const Input& input, double x) {
  for (const double kink : input.kinks) {
    double away = x - kink;
    if (input.period > 0) away -= input.period * std::round(away / input.period);
    if (std::abs(away) < 0.05) return true;
  }
  return false;
}

// FNV-1a: the same on every machine.
uint64_t hash(const std::string& text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

std::vector<double> draw(const Input& input, uint64_t seed) {
  const auto n = static_cast<size_t>(input.shape.numel());
  std::vector<double> out(n);
  for (size_t i = 0; i < n; ++i) {
    double x = 0;
    for (uint64_t attempt = 0; attempt < 100; ++attempt) {
      const auto words = philox(seed + attempt * 0x9e3779b97f4a7c15u, i);
      x = input.low + (input.high - input.low) * uniform_f64(words[0], words[1]);
      if (!near_kink(input, x)) break;
    }
    out[i] = x;
  }
  return out;
}

DType real_of(DType dtype) {
  return dtype == DType::c128 ? f64 : dtype == DType::c64 ? f32 : dtype;
}

Tensor in_dtype(const Tensor& x, DType dtype) {
  if (dtype == bool_) return x.gt(Scalar(0));
  if (dtype == u8) return x.abs().to(dtype);
  return x.to(dtype);
}

Tensor make_input(const Input& input, uint64_t seed, DType dtype, Device device) {
  if (input.kind == Input::Kind::complex) {
    Input part = input;
    part.kind = Input::Kind::real;
    const DType real = real_of(dtype);
    const Tensor im = make_input(part, seed ^ 0x5bd1e995u, real, device);
    return complex(make_input(part, seed, real, device), im);
  }
  Tensor x(TensorData(input.values.empty() ? draw(input, seed) : input.values, input.shape),
           device);
  if (input.made) x = input.made(x);
  switch (input.kind) {
    case Input::Kind::index:
      return x.floor().to(i64);
    case Input::Kind::mask:
      return x.gt(Scalar(0));
    default:
      return in_dtype(x, real_of(dtype));
  }
}

Input input_of(Input::Kind kind, const Shape& shape, double low, double high) {
  Input input;
  input.kind = kind;
  input.shape = shape;
  input.low = low;
  input.high = high;
  return input;
}

Input fixed(Input::Kind kind, std::vector<double> values, const Shape& shape) {
  Input input = input_of(kind, shape, 0, 0);
  input.values = std::move(values);
  return input;
}

}  // namespace

Input real(const Shape& shape, double low, double high) {
  return input_of(Input::Kind::real, shape, low, high);
}
Input constant(const Shape& shape, double low, double high) {
  return input_of(Input::Kind::constant, shape, low, high);
}
Input values(std::vector<double> values, const Shape& shape) {
  return fixed(Input::Kind::constant, std::move(values), shape);
}
Input values(std::vector<double> list) {
  const Shape shape{static_cast<int64_t>(list.size())};
  return values(std::move(list), shape);
}
Input index(const Shape& shape, int64_t low, int64_t high) {
  return input_of(Input::Kind::index, shape, static_cast<double>(low), static_cast<double>(high));
}
Input indices(std::vector<double> values, const Shape& shape) {
  return fixed(Input::Kind::index, std::move(values), shape);
}
Input mask(const Shape& shape) { return input_of(Input::Kind::mask, shape, -1.0, 1.0); }
Input complex_(const Shape& shape, double low, double high) {
  return input_of(Input::Kind::complex, shape, low, high);
}

std::deque<Case>& cases() {
  static std::deque<Case> all;
  return all;
}

Tensors make_inputs(const Case& c, const std::vector<Input>& inputs, DType dtype, Device device) {
  Tensors out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    out.push_back(make_input(inputs[i], hash(c.name + c.python) + i, dtype, device));
  }
  return out;
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case f64:
    case DType::c128:
      return 1e-11;
    case f32:
    case DType::c64:
      return 1e-5;
    case f16:
      return 4e-3;
    case bf16:
      return 3e-2;
    default:
      return 0;
  }
}

std::vector<double> doubles_of(const Tensor& x) {
  return (is_complex(x) ? view_as_real(x.detach()) : x).to_data().to_doubles();
}

std::string difference(const Tensors& got, const Tensors& expected, double tolerance) {
  if (got.size() != expected.size()) {
    return std::to_string(got.size()) + " results; expected " + std::to_string(expected.size());
  }
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string which = "result " + std::to_string(i) + ": ";
    if (got[i].dtype() != expected[i].dtype()) {
      return which + "dtype " + to_string(got[i].dtype()) + "; expected " +
             to_string(expected[i].dtype());
    }
    if (got[i].shape() != expected[i].shape()) {
      return which + "shape " + to_string(got[i].shape()) + "; expected " +
             to_string(expected[i].shape());
    }
    const auto a = doubles_of(got[i]);
    const auto b = doubles_of(expected[i]);
    // Integers may have floating point results.
    const double allowed = std::max(tolerance, tolerance_of(got[i].dtype()));
    for (size_t k = 0; k < a.size(); ++k) {
      if (a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k]))) continue;
      if (!(std::abs(a[k] - b[k]) <= allowed * std::max(1.0, std::abs(b[k])))) {
        return which + "element " + std::to_string(k) + " is " + std::to_string(a[k]) +
               "; expected " + std::to_string(b[k]) + " (off by " +
               std::to_string((a[k] - b[k]) / std::max(1.0, std::abs(b[k]))) + ")";
      }
    }
  }
  return "";
}

std::string describe(const Case& c, DType dtype) {
  return c.name + ": " + c.python + ", " + to_string(dtype);
}

}  // namespace kiln::ops
