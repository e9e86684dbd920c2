// Gradients against finite differences in double precision, to second order, for any backend.
//
// A case is a function of float tensors. It is made a number by weighting its result with fixed
// random numbers:
//   s(x) = sum(w * f(x)).
// First order: ds/dx from backward() against (s(x + h) - s(x - h)) / 2h, element by element. Second
// order: with t(x) = sum_i sum(v_i * ds/dx_i), dt/dx from a recorded pass against differences of
// the first-order gradients.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/autodiff/autodiff.h"

namespace gradcheck {

using kiln::Shape;
using kiln::TensorData;

// Uniform numbers in [low, high), fixed by `seed`.
inline TensorData uniform(const Shape& shape, double low, double high, uint64_t seed) {
  TensorData data(shape, kiln::f64);
  auto values = data.as_mutable<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto words = kiln::philox(seed, i);
    values[i] = low + (high - low) * kiln::uniform_f64(words[0], words[1]);
  }
  return data;
}

template <class B>
struct Case {
  using A = kiln::Autodiff<B>;
  using T = typename A::FloatTensorPrimitive;
  const char* op;  // the row of the op table that it covers
  std::vector<TensorData> inputs;
  std::function<T(const std::vector<T>&)> f;
  bool second_order = true;
  double tolerance = 1e-6;
};

template <class B>
class Checker {
 public:
  using A = kiln::Autodiff<B>;
  using T = typename A::FloatTensorPrimitive;

  Checker(const Case<B>& c, kiln::Device device) : case_(c), device_(device) {
    std::vector<T> leaves = upload(c.inputs, false);
    const Shape out = A::shape(c.f(leaves));
    weights_ = A::float_from_data(uniform(out, -1.0, 1.0, 91), device);
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      directions_.push_back(
          A::float_from_data(uniform(c.inputs[i].shape(), -1.0, 1.0, 92 + i), device));
    }
  }

  void check() {
    INFO("op ", std::string(case_.op));
    compare("first order", gradients(case_.inputs),
            [&](const std::vector<TensorData>& x) { return number(weighted(upload(x, false))); });
    if (!case_.second_order) return;
    compare("second order", second_gradients(case_.inputs), [&](const std::vector<TensorData>& x) {
      double total = 0.0;
      const auto grads = gradients(x);
      for (size_t i = 0; i < grads.size(); ++i) {
        const auto v = A::float_into_data(directions_[i]).to_doubles();
        for (size_t k = 0; k < v.size(); ++k) total += v[k] * grads[i][k];
      }
      return total;
    });
  }

 private:
  std::vector<T> upload(const std::vector<TensorData>& data, bool tracked) const {
    std::vector<T> out;
    for (const TensorData& d : data) {
      T x = A::float_from_data(d, device_);
      out.push_back(tracked ? A::require_grad(x) : x);
    }
    return out;
  }

  static T sum_all(const T& x) {
    return A::float_sum(x, kiln::all_dims(Shape(A::shape(x)).rank()), false);
  }
  T weighted(const std::vector<T>& x) const { return sum_all(A::float_mul(case_.f(x), weights_)); }
  static double number(const T& x) { return A::float_into_data(x).item(0); }

  static std::vector<double> values(const std::optional<T>& grad, const TensorData& like) {
    if (!grad) return std::vector<double>(static_cast<size_t>(like.numel()), 0.0);
    return A::float_into_data(*grad).to_doubles();
  }

  std::vector<std::vector<double>> gradients(const std::vector<TensorData>& x) const {
    const std::vector<T> leaves = upload(x, true);
    const auto grads = A::backward(weighted(leaves));
    std::vector<std::vector<double>> out;
    for (size_t i = 0; i < x.size(); ++i) out.push_back(values(grads.find(leaves[i]), x[i]));
    return out;
  }

  std::vector<std::vector<double>> second_gradients(const std::vector<TensorData>& x) const {
    const std::vector<T> leaves = upload(x, true);
    const T s = weighted(leaves);
    const T seed = A::float_from_data(TensorData(std::vector<double>{1.0}, Shape{}), device_);
    const auto first = A::grad_of(std::span(&s, 1), std::span(&seed, 1), leaves,
                                  {.retain_graph = true, .create_graph = true});
    std::optional<T> t;
    for (size_t i = 0; i < first.size(); ++i) {
      if (!first[i] || !first[i]->node) continue;
      const T part = sum_all(A::float_mul(*first[i], directions_[i]));
      t = t ? A::float_add(*t, part) : part;
    }
    std::vector<std::vector<double>> out;
    if (!t) {  // the first derivative is constant
      for (const TensorData& d : x) out.push_back(values(std::nullopt, d));
      return out;
    }
    const auto grads = A::backward(*t);
    for (size_t i = 0; i < x.size(); ++i) out.push_back(values(grads.find(leaves[i]), x[i]));
    return out;
  }

  template <class F>
  void compare(const char* what, const std::vector<std::vector<double>>& analytic, F number_of) {
    constexpr double kStep = 1e-5;
    for (size_t i = 0; i < case_.inputs.size(); ++i) {
      for (int64_t k = 0; k < case_.inputs[i].numel(); ++k) {
        const auto shifted = [&](double by) {
          std::vector<TensorData> x = case_.inputs;
          x[i] = TensorData(x[i].to_doubles(), x[i].shape());
          x[i].template as_mutable<double>()[static_cast<size_t>(k)] += by;
          return number_of(x);
        };
        const double expected = (shifted(kStep) - shifted(-kStep)) / (2 * kStep);
        const double got = analytic[i][static_cast<size_t>(k)];
        const double error = std::abs(got - expected) / std::max(1.0, std::abs(expected));
        if (!(error <= case_.tolerance)) {
          FAIL_CHECK(std::string(case_.op), ": ", what, ", input ", i, " element ", k, ": got ",
                     got, ", expected ", expected);
          return;
        }
      }
    }
  }

  const Case<B>& case_;
  kiln::Device device_;
  T weights_;
  std::vector<T> directions_;
};

}  // namespace gradcheck
