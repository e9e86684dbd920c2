// Autodiff<Autodiff<Cpu>>: the gradients of ops with formulas of their own are differentiated by
// the inner decorator, and agree with finite differences.
#include "gradient_cases_transforms.h"
#include "kiln/backend/cpu/cpu.h"

namespace {

using kiln::Cpu;
using kiln::Shape;
using kiln::TensorData;
using Inner = kiln::Autodiff<Cpu>;
using Outer = kiln::Autodiff<Inner>;
using Case = gradcheck::Case<Inner>;
using Leaves = std::vector<Inner::FloatTensorPrimitive>;

// The gradients of sum(w f(x)) that Outer gives, weighted with v and added up: a number of the
// inner graph.
Inner::FloatTensorPrimitive slope(const Case& c, const Leaves& leaves) {
  const auto random = [](const Shape& shape, uint64_t seed) {
    return gradcheck::uniform(shape, -1.0, 1.0, seed);
  };
  const auto total = []<class A>(const auto& x) {
    return A::float_sum(x, kiln::all_dims(Shape(A::shape(x)).rank()), false);
  };
  std::vector<Outer::FloatTensorPrimitive> x;
  for (const auto& leaf : leaves) x.push_back(Outer::require_grad(Outer::from_inner(leaf)));
  const auto y = c.f(x);
  const auto w = Outer::float_from_data(random(Outer::shape(y), 91), kiln::kCpu);
  const auto grads = Outer::backward(total.operator()<Outer>(Outer::float_mul(y, w)));
  auto out = Inner::float_from_data(TensorData(std::vector<double>{0.0}, Shape{}), kiln::kCpu);
  for (size_t i = 0; i < x.size(); ++i) {
    const auto g = Outer::grad(x[i], grads);
    REQUIRE(g.has_value());
    const auto v = Inner::float_from_data(random(Inner::shape(*g), 92 + i), kiln::kCpu);
    out = Inner::float_add(out, total.operator()<Inner>(Inner::float_mul(*g, v)));
  }
  return out;
}

Leaves leaves_of(const std::vector<TensorData>& inputs, bool tracked) {
  Leaves out;
  for (const TensorData& data : inputs) {
    const auto x = Inner::float_from_data(data, kiln::kCpu);
    out.push_back(tracked ? Inner::require_grad(x) : x);
  }
  return out;
}

void check(const Case& c) {
  INFO(std::string(c.op));
  const Leaves leaves = leaves_of(c.inputs, true);
  const auto number = slope(c, leaves);
  // A slope that is constant has no history.
  const bool constant = !Inner::is_require_grad(number);
  const auto grads = constant ? Inner::Gradients() : Inner::backward(number);
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const auto found = constant ? std::nullopt : Inner::grad(leaves[i], grads);
    const auto got = found ? Cpu::float_into_data(*found).to_doubles()
                           : std::vector<double>(static_cast<size_t>(c.inputs[i].numel()), 0.0);
    for (size_t k = 0; k < got.size(); ++k) {
      const auto shifted = [&](double by) {
        std::vector<TensorData> x = c.inputs;
        x[i] = TensorData(x[i].to_doubles(), x[i].shape());
        x[i].as_mutable<double>()[k] += by;
        return Inner::float_into_data(slope(c, leaves_of(x, false))).item(0);
      };
      const double want = (shifted(kStep) - shifted(-kStep)) / (2 * kStep);
      INFO("input ", i, " element ", k);
      CHECK(got[k] == doctest::Approx(want).epsilon(1e-6).scale(1.0));
    }
  }
}

}  // namespace

TEST_CASE("Autodiff<Autodiff<Cpu>>: group_norm and batch_norm with given statistics") {
  for (const Case& c : gradcheck::norm_cases<Inner>(kiln::kCpu)) check(c);
}

TEST_CASE("Autodiff<Autodiff<Cpu>>: Fourier transforms and distances") {
  for (const Case& c : gradcheck::transform_cases<Inner>()) check(c);
}

TEST_CASE("Autodiff<Autodiff<Cpu>>: complex numbers") {
  for (const Case& c : gradcheck::complex_cases<Inner>()) check(c);
}

TEST_CASE("Autodiff<Autodiff<Cpu>>: images read at points, in other sizes, padded") {
  for (const Case& c : gradcheck::image_cases<Inner>()) check(c);
}
