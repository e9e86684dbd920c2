// Free sizes: expressions that fit samples, and graphs that run at many sizes.
#include "kiln/graph/file/free_sizes.h"

#include <cmath>

#include <doctest/doctest.h>

#include "kiln/compile/graph_model.h"
#include "kiln/kiln.h"
#include "tests/support/hostile.h"

namespace kiln {
namespace {

using graph::SizeExpression;
using graph::Sizes;
using test::TempDir;

template <class F>
std::vector<int64_t> at_samples(const std::vector<Sizes>& samples, F&& f) {
  std::vector<int64_t> out;
  for (const Sizes& s : samples) out.push_back(f(s));
  return out;
}

TEST_CASE("free sizes: what is fitted gives the function's values at other sizes") {
  const std::vector<std::string> names{"a", "b"};
  struct Case {
    int64_t (*f)(const Sizes&);
    const char* text;
  };
  const Case cases[] = {
      {[](const Sizes&) -> int64_t { return 7; }, "7"},
      {[](const Sizes& s) { return s[0]; }, "a"},
      {[](const Sizes& s) { return 3 * s[1] - 5; }, "3*b - 5"},
      {[](const Sizes& s) { return s[0] * s[1] * 768; }, "768*a*b"},
      {[](const Sizes& s) { return s[0] * s[1] * s[1]; }, "a*b*b"},
      {[](const Sizes& s) { return s[0] + s[1] + 1; }, "a + b + 1"},
      {[](const Sizes& s) { return s[0] * (s[0] + 1) / 2; }, "(a + a*a)/2"},
      {[](const Sizes& s) { return -s[0] - 1; }, "-a - 1"},
  };
  for (const int attempt : {0, 1, 2}) {
    for (const Sizes& example : {Sizes{1, 1}, Sizes{4, 4}, Sizes{32, 7}}) {
      const std::vector<Sizes> samples = graph::sample_sizes(example, attempt);
      for (const Case& c : cases) {
        CAPTURE(c.text);
        const auto e = graph::fitted(at_samples(samples, c.f), samples);
        REQUIRE(e.has_value());
        CHECK(e->str(names) == c.text);
        for (const Sizes& s : {Sizes{1, 1}, Sizes{2, 9}, Sizes{1000, 3}, Sizes{0, 5}}) {
          CHECK(e->at(s) == c.f(s));
        }
      }
      // No sum of products: a rounded quotient, and a smaller of two.
      const auto rounded =
          graph::fitted(at_samples(samples, [](const Sizes& s) { return s[0] / 5; }), samples);
      const auto smaller = graph::fitted(
          at_samples(samples, [](const Sizes& s) { return std::min(s[0], s[1]) % 3; }), samples);
      if (attempt < 2) CHECK(!rounded.has_value());
      CHECK(!smaller.has_value());
    }
  }
}

TEST_CASE("free sizes: numbers and their reciprocals") {
  const std::vector<Sizes> samples = graph::sample_sizes({3}, 0);
  std::vector<double> plain, turned, root;
  for (const Sizes& s : samples) {
    const auto n = static_cast<double>(s[0]);
    plain.push_back(2 * n);
    turned.push_back(1.0 / (4 * n));
    root.push_back(std::sqrt(n));
  }
  bool reciprocal = true;
  CHECK(graph::fitted_number(plain, samples, reciprocal)->at({10}) == 20);
  CHECK(!reciprocal);
  CHECK(graph::fitted_number(turned, samples, reciprocal)->at({10}) == 40);
  CHECK(reciprocal);
  CHECK(!graph::fitted_number(root, samples, reciprocal).has_value());
}

TEST_CASE("free sizes: an expression that leads nowhere") {
  const SizeExpression large{{{int64_t{1} << 61, {0, 0, 0}}}, 1};
  CHECK_THROWS_AS(static_cast<void>(large.at({int64_t{1} << 40})), ValueError);
  CHECK_THROWS_AS(static_cast<void>(large.at({int64_t{1} << 62})), ValueError);
  const SizeExpression half{{{1, {0}}}, 2};
  CHECK(half.at({6}) == 3);
  CHECK_THROWS_AS(static_cast<void>(half.at({7})), ValueError);
}

TEST_CASE("free sizes: a C++ model runs any batch from its file") {
  const TempDir dir;
  manual_seed(2);
  nn::Sequential net(nn::Conv2d(1, 2, 3), nn::ReLU(), nn::Flatten(), nn::Linear(2 * 6 * 6, 3));
  net.eval();
  const std::string path = dir.path("cnn.kiln");
  const GraphModel model =
      capture(net, randn({2, 1, 8, 8}),
              {.input_names = {"image"}, .dynamic_axes = {{"image", {{0, "batch"}}}}});
  model.save(path);
  const GraphModel loaded = GraphModel::load(path);
  CHECK(loaded.free_dims() == std::vector<std::string>{"batch"});
  CHECK(loaded.free_dims_of(0) == std::vector<std::string>{"batch", "", "", ""});
  CHECK(loaded.example_sizes() == std::vector<int64_t>{2});
  for (const int64_t n : {1, 2, 3, 17}) {
    const Tensor x = randn({n, 1, 8, 8});
    const Tensor expected = no_grad([&] { return net(x); });
    CHECK(model(x).equal(expected));
    CHECK(loaded(x).equal(expected));
  }
  CHECK_THROWS_AS(static_cast<void>(loaded(randn({2, 1, 8, 9}))), ShapeError);
  CHECK_THROWS_AS(static_cast<void>(loaded.graph_at({1, 2})), ValueError);
}

TEST_CASE("free sizes: changed bytes give a result or an error") {
  const TempDir dir;
  manual_seed(1);
  nn::LSTM net(nn::LSTMConfig{3, 4});
  const std::string path = dir.path("lstm.kiln");
  capture([&](const TensorList& xs) { return TensorList{net(xs[0]).first}; }, {randn({4, 2, 3})},
          {.dynamic_axes = {{"input0", {{0, "seq"}, {1, "batch"}}}}})
      .save(path);
  const std::string good = test::read_bytes(path);
  const test::FuzzCount count = test::fuzz(dir, good, 1000, 9, [&](const std::string& changed) {
    const GraphModel model = GraphModel::load(changed);
    try {
      static_cast<void>(model({randn({5, 3, 3})}));
    } catch (const Error&) {  // its inputs are others now
    }
  });
  CHECK(count.results > 0);
  CHECK(count.errors > 300);
}

}  // namespace
}  // namespace kiln
