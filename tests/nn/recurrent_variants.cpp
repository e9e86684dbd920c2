// A variant of an LSTM and of a GRU beside loops over numbers. Python's tests have the others.
#include <cmath>
#include <tuple>

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "tests/support/throws.h"

using namespace kiln;

namespace {

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// w x + b for a matrix [rows, x.size()].
std::vector<double> affine(const Tensor& w, const Tensor& b, const std::vector<double>& x) {
  const std::vector<double> weights = w.to_vector<double>();
  std::vector<double> out = b.to_vector<double>();
  for (size_t r = 0; r < out.size(); ++r) {
    for (size_t c = 0; c < x.size(); ++c) out[r] += weights[r * x.size() + c] * x[c];
  }
  return out;
}

void check(const Tensor& got, const std::vector<double>& want) {
  const std::vector<double> values = got.to_vector<double>();
  REQUIRE(values.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) CHECK(values[i] == doctest::Approx(want[i]));
}

}  // namespace

TEST_CASE("LSTM: coupled gates and clipped cell states") {
  nn::LSTM layer({.input_size = 2, .hidden_size = 3, .clip = 0.2, .input_forget = true},
                 {.dtype = f64});
  const Tensor x = randn({5, 2}, {.dtype = f64});
  const auto& w = layer.weights();
  std::vector<double> h(3, 0.0), c(3, 0.0), want;
  for (int64_t t = 0; t < 5; ++t) {
    const auto xs = affine(w[0], w[2], x.select(0, t).to_vector<double>());
    const auto hs = affine(w[1], w[3], h);
    for (size_t j = 0; j < 3; ++j) {
      const double i = sigmoid_of(xs[j] + hs[j]);
      const double g = std::tanh(xs[6 + j] + hs[6 + j]);
      c[j] = std::min(0.2, std::max(-0.2, (1 - i) * c[j] + i * g));
      h[j] = sigmoid_of(xs[9 + j] + hs[9 + j]) * std::tanh(c[j]);
    }
    want.insert(want.end(), h.begin(), h.end());
  }
  const auto [out, state] = layer.forward(x);
  check(out, want);
  check(state.second, c);
}

TEST_CASE("GRU: a reset gate before the product, other activations") {
  nn::GRU layer({.input_size = 2,
                 .hidden_size = 2,
                 .reset_after = false,
                 .gate_activation = "hardsigmoid",
                 .hidden_activation = "relu"},
                {.dtype = f64});
  const Tensor x = randn({4, 2}, {.dtype = f64});
  const auto& w = layer.weights();
  const Tensor w_n = w[1]->narrow(0, 4, 2), b_n = w[3]->narrow(0, 4, 2);
  const auto gate = [](double v) { return std::min(1.0, std::max(0.0, v / 6 + 0.5)); };
  std::vector<double> h(2, 0.0), want;
  for (int64_t t = 0; t < 4; ++t) {
    const auto xs = affine(w[0], w[2], x.select(0, t).to_vector<double>());
    const auto hs = affine(w[1], w[3], h);
    std::vector<double> scaled = h;
    for (size_t j = 0; j < 2; ++j) scaled[j] *= gate(xs[j] + hs[j]);
    const auto fresh = affine(w_n, b_n, scaled);
    for (size_t j = 0; j < 2; ++j) {
      const double z = gate(xs[2 + j] + hs[2 + j]);
      h[j] = (1 - z) * std::max(0.0, xs[4 + j] + fresh[j]) + z * h[j];
    }
    want.insert(want.end(), h.begin(), h.end());
  }
  check(layer.forward(x).first, want);
}

TEST_CASE("recurrent variants: what is refused") {
  CHECK_THROWS_AS(nn::LSTM({.input_size = 2, .hidden_size = 3, .clip = 0.0}), ValueError);
  CHECK_THROWS_AS(nn::GRU({.input_size = 2, .hidden_size = 3, .gate_activation = "no"}),
                  ValueError);
  CHECK_THROWS_AS(nn::RNN({.input_size = 2, .hidden_size = 3, .hidden_activation = "no"}),
                  ValueError);
}

TEST_CASE("recurrent layers: the error of another input size shows the input") {
  const Tensor x = ones({5, 2, 7});
  CHECK(test::message_of<ShapeError>([&] { nn::LSTM(3, 4)(x); }) ==
        "LSTM: the input's last dim must be input_size; got 7 in an input of shape [5, 2, 7]; "
        "expected 3");
  CHECK(test::message_of<ShapeError>([&] {
          nn::GRU(3, 4, {.batch_first = true})(x);
        }).find("GRU: ") == 0);
  const nn::PackedSequence packed =
      nn::pack_sequence(std::vector<Tensor>{ones({3, 7}), ones({2, 7})});
  CHECK(test::message_of<ShapeError>([&] { nn::RNN(3, 4)(packed); }).find("[5, 7]") !=
        std::string::npos);
}

TEST_CASE("LSTM: a state as a tuple") {
  nn::LSTM lstm(3, 4);
  nn::LSTMCell cell(3, 4);
  const Tensor x = randn({5, 2, 3}), h = randn({1, 2, 4}), c = randn({1, 2, 4});
  const auto [expected, state] = lstm(x, std::make_pair(h, c));
  const auto [y, last] = lstm(x, std::make_tuple(h, c));
  CHECK(y.equal(expected));
  CHECK(last.second.equal(state.second));
  CHECK(lstm.forward(x, {h, c}).first.equal(expected));
  Tensor hn, cn;
  std::tie(hn, cn) = last;
  CHECK(hn.equal(state.first));
  CHECK(cell(x[0], std::make_tuple(h[0], c[0]))
            .first.equal(cell(x[0], nn::LSTMState(h[0], c[0])).first));
  const nn::PackedSequence packed =
      nn::pack_sequence(std::vector<Tensor>{ones({3, 3}), ones({2, 3})});
  CHECK(lstm(packed, std::make_tuple(h, c))
            .first.data.equal(lstm(packed, std::make_pair(h, c)).first.data));
}
