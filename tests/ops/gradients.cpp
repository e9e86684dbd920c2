// Gradients of every op case against finite differences in double precision, to second order.
//
// A case becomes a number by weighting its floating point results with fixed random numbers,
// s(x) = sum(w * f(x)); ds/dx is compared with (s(x + h) - s(x - h)) / 2h, and, with t(x) =
// sum(v * ds/dx), dt/dx with differences of t.
#include <cmath>

#include <doctest/doctest.h>

#include "tests/ops/case.h"

namespace kiln::ops {
namespace {

constexpr double kStep = 1e-5;

Tensor weights_like(const Tensor& x, uint64_t seed) {
  TensorData data(x.shape(), f64);
  auto values = data.as_mutable<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto words = philox(seed, i);
    values[i] = 2 * uniform_f64(words[0], words[1]) - 1;
  }
  return Tensor(data).to(x.dtype());
}

bool differentiable(const Input& input) {
  return input.kind == Input::Kind::real || input.kind == Input::Kind::complex;
}

// Complex results and gradients are compared part by part.
Tensor in_parts(const Tensor& x) { return is_complex(x) ? view_as_real(x) : x; }

struct Checker {
  const Case& c;
  Tensors fixed;  // the inputs' values

  explicit Checker(const Case& c_) : c(c_), fixed(make_inputs(c_, c_.inputs, c_.dtype_list[0])) {}

  // The inputs, those to differentiate marked; element k of input i moved by h.
  Tensors leaves(size_t i = 0, int64_t k = 0, double h = 0) const {
    Tensors out;
    for (size_t j = 0; j < fixed.size(); ++j) {
      Tensor x = fixed[j].clone();
      if (h != 0 && j == i) in_parts(x).data_ptr<double>()[k] += h;
      if (differentiable(c.inputs[j])) x.requires_grad_();
      out.push_back(x);
    }
    return out;
  }
  Tensors wanted(const Tensors& inputs) const {
    Tensors out;
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (differentiable(c.inputs[j])) out.push_back(inputs[j]);
    }
    return out;
  }

  // Undefined when no result is floating point or depends on an input.
  Tensor number(const Tensors& inputs) const {
    Tensor sum;
    uint64_t seed = 91;
    for (const Tensor& result : c.call(inputs)) {
      ++seed;
      const Tensor y = in_parts(result);
      if (!is_floating_point(y.dtype())) continue;
      const Tensor part = (y * weights_like(y, seed)).sum().to(f64);
      sum = sum.defined() ? sum + part : part;
    }
    return sum;
  }
  // Gradients of the number; undefined ones are zeros.
  Tensors first(const Tensors& inputs, bool create_graph) const {
    const Tensor s = number(inputs);
    const Tensors to = wanted(inputs);
    Tensors out;
    if (s.defined() && s.requires_grad()) {
      out = grad(std::span<const Tensor>(&s, 1), to,
                 {.create_graph = create_graph, .allow_unused = true});
    }
    out.resize(to.size());
    for (size_t i = 0; i < to.size(); ++i) {
      if (!out[i].defined()) out[i] = zeros_like(to[i]);
    }
    return out;
  }
  Tensor number_of_gradients(const Tensors& inputs, bool create_graph) const {
    Tensor sum;
    uint64_t seed = 191;
    for (const Tensor& grad_of_input : first(inputs, create_graph)) {
      const Tensor g = in_parts(grad_of_input);
      const Tensor part = (g * weights_like(g, seed++)).sum();
      sum = sum.defined() ? sum + part : part;
    }
    return sum;
  }
  Tensors second(const Tensors& inputs) const {
    const Tensor t = number_of_gradients(inputs, true);
    const Tensors to = wanted(inputs);
    Tensors out;
    if (t.requires_grad()) {
      out = grad(std::span<const Tensor>(&t, 1), to, {.allow_unused = true});
    }
    out.resize(to.size());
    for (size_t i = 0; i < to.size(); ++i) {
      if (!out[i].defined()) out[i] = zeros_like(to[i]);
    }
    return out;
  }

  template <class F>
  void compare(const char* what, const Tensors& analytic, F number_at) const {
    size_t which = 0;
    for (size_t i = 0; i < fixed.size(); ++i) {
      if (!differentiable(c.inputs[i])) continue;
      const auto got = in_parts(analytic[which++]).to_vector<double>();
      for (size_t k = 0; k < got.size(); ++k) {
        const auto at = [&](double h) { return number_at(leaves(i, static_cast<int64_t>(k), h)); };
        const double expected = (at(kStep) - at(-kStep)) / (2 * kStep);
        const double error = std::abs(got[k] - expected) / std::max(1.0, std::abs(expected));
        if (!(error <= c.grad_tolerance)) {
          FAIL_CHECK(std::string(what), " derivative, input ", i, " element ", k, ": got ", got[k],
                     ", differences give ", expected);
          return;
        }
      }
    }
  }

  void check() const {
    const Tensors x = leaves();
    compare("first", first(x, false), [&](const Tensors& at) {
      NoGradGuard guard;
      return number(at).item();
    });
    if (c.derivatives < 2) return;
    compare("second", second(leaves()),
            [&](const Tensors& at) { return number_of_gradients(at, false).item(); });
  }
};

bool has_derivative(const Case& c) {
  if (c.derivatives == 0 || (c.dtype_list[0] != f64 && c.dtype_list[0] != c128)) {
    return false;
  }
  for (const Input& input : c.inputs) {
    if (differentiable(input)) return true;
  }
  return false;
}

TEST_CASE("op cases: gradients equal differences, to second order") {
  for (const Case& c : cases()) {
    if (!has_derivative(c)) continue;
    INFO(c.name, ": ", c.python);
    try {
      Checker(c).check();
    } catch (const std::exception& error) {
      FAIL_CHECK(std::string(error.what()));
    }
  }
}

}  // namespace
}  // namespace kiln::ops
