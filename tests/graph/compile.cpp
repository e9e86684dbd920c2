// Compiled functions beside the same functions called eagerly: results, gradients, random numbers,
// parameters and state, bit for bit.
#include "kiln/compile/compile.h"

#include <atomic>
#include <thread>

#include <doctest/doctest.h>

#include "kiln/graph/capture.h"
#include "kiln/kiln.h"
#include "kiln/models/models.h"

namespace kiln {
namespace {

using Values = std::vector<double>;

Values all_values(const Tensor& x) {
  return x.defined() ? x.detach().to_data().to_doubles() : Values{};
}

struct Mlp : nn::Module {
  nn::Linear a{8, 16};
  nn::Linear b{16, 4};
  nn::Dropout drop{0.25};
  KILN_MODULE(Mlp, a, b, drop)
  Tensor forward(Tensor x) { return b(drop(a(x).relu())); }
};

struct Cnn : nn::Module {
  nn::Conv2d conv{1, 4, 3};
  nn::BatchNorm2d norm{4};
  nn::Dropout drop{0.5};
  nn::Linear fc{4 * 6 * 6, 3};
  KILN_MODULE(Cnn, conv, norm, drop, fc)
  Tensor forward(Tensor x) { return fc(drop(norm(conv(x)).relu()).flatten(1)); }
};

struct Recurrent : nn::Module {
  nn::LSTM lstm{nn::LSTMConfig(5, 7)};
  nn::Linear out{7, 5};
  KILN_MODULE(Recurrent, lstm, out)
  Tensor forward(Tensor x) { return out(lstm(x).first); }
};

struct Field : nn::Module {
  nn::Linear a{1, 16}, b{16, 16}, c{16, 1};
  KILN_MODULE(Field, a, b, c)
  Tensor forward(Tensor x) { return c(b(a(x).tanh()).tanh()); }
};

// Losses and parameters after so many steps; compiled or not.
template <class Net, class Optimizer, class Loss>
std::pair<Values, std::vector<Values>> train(Net& net, Optimizer& optimizer, Loss loss_of,
                                             const std::vector<Tensor>& batches, bool compiled,
                                             int64_t* replayed = nullptr) {
  manual_seed(9);
  const auto step = compile(
      [&](const Tensor& x) {
        net.zero_grad();
        const Tensor loss = loss_of(net, x);
        loss.backward_accumulate();
        optimizer.step();
        return loss;
      },
      {.disable = !compiled, .modules = {&net}});
  Values losses;
  for (const Tensor& x : batches) {
    losses.push_back(step(x).template item<double>());
    for (auto& group : optimizer.param_groups()) group.lr *= 0.97;  // a schedule
  }
  if (replayed != nullptr) *replayed = step.counts().replayed;
  std::vector<Values> state;
  for (const Tensor& p : net.parameters()) state.push_back(all_values(p));
  for (const Tensor& p : net.parameters()) state.push_back(all_values(p.grad()));
  for (const Tensor& b : net.buffers()) state.push_back(all_values(b));
  for (const auto& [name, x] : optimizer.state_dict().tensors) state.push_back(all_values(x));
  for (const auto& [name, text] : optimizer.state_dict().scalars) {
    state.push_back({static_cast<double>(std::hash<std::string>()(name + text) >> 12)});
  }
  return {losses, state};
}

template <class Net, class MakeOptimizer, class Loss>
void check_training(Net& net, MakeOptimizer make, Loss loss_of,
                    const std::vector<Tensor>& batches) {
  net.materialize();
  const auto twin = net.clone();
  auto first = make(net.parameters());
  auto second = make(twin->parameters());
  int64_t replayed = 0;
  const auto eager = train(net, first, loss_of, batches, false);
  const auto compiled = train(*twin, second, loss_of, batches, true, &replayed);
  CHECK(replayed == static_cast<int64_t>(batches.size()) - 1);
  CHECK(compiled.first == eager.first);
  CHECK(compiled.first.front() != compiled.first.back());
  CHECK(compiled.second == eager.second);
}

std::vector<Tensor> batches_of(const Shape& shape, int count = 20) {
  manual_seed(3);
  std::vector<Tensor> out;
  for (int i = 0; i < count; ++i) out.push_back(randn(shape));
  return out;
}

}  // namespace

TEST_CASE("compile: a training step of an MLP with dropout and Adam is eager's for 20 steps") {
  manual_seed(1);
  Mlp net;
  check_training(
      net, [](auto params) { return optim::Adam(params, {.lr = 0.01}); },
      [](auto& m, const Tensor& x) { return functional::mse_loss(m(x), x.narrow(1, 0, 4)); },
      batches_of({6, 8}));
}

TEST_CASE("compile: a training step of a CNN with batch norm and SGD") {
  manual_seed(1);
  Cnn net;
  const Tensor targets = tensor({0, 1, 2, 1, 0});
  check_training(
      net, [](auto params) { return optim::SGD(params, {.lr = 0.05, .momentum = 0.9}); },
      [&](auto& m, const Tensor& x) { return functional::cross_entropy(m(x), targets); },
      batches_of({5, 1, 8, 8}));
}

TEST_CASE("compile: a training step of an LSTM") {
  manual_seed(1);
  Recurrent net;
  check_training(
      net, [](auto params) { return optim::RMSprop(params, {.lr = 0.01}); },
      [](auto& m, const Tensor& x) { return functional::mse_loss(m(x), x); },
      batches_of({4, 3, 5}));
}

TEST_CASE("compile: a step with derivatives of second order inside, as of a PINN") {
  manual_seed(1);
  Field net;
  check_training(
      net, [](auto params) { return optim::Adam(params, {.lr = 0.01}); },
      [](auto& m, const Tensor& points) {
        const Tensor x = points.detach().requires_grad_();
        const Tensor u = m(x);
        const Tensor du = grad({u.sum()}, {x}, {.create_graph = true})[0];
        const Tensor ddu = grad({du.sum()}, {x}, {.create_graph = true})[0];
        return (ddu + u).square().mean();
      },
      batches_of({32, 1}));
}

TEST_CASE("compile: gradients through a compiled function, of first and second order") {
  manual_seed(2);
  const Tensor w = randn({4, 4}, {.dtype = f64}).requires_grad_();
  const auto f = [w](const Tensor& x) { return (x.matmul(w).sin() * x).sum(1); };
  const auto g = compile(f);
  for (int i = 0; i < 4; ++i) {
    const Tensor x = randn({3, 4}, {.dtype = f64}).requires_grad_();
    const auto both = [&](const auto& function) {
      const Tensor y = function(x);
      const auto first = grad({y.square().sum()}, {x, w}, {.create_graph = true});
      const auto second = grad({first[0].sin().sum() + first[1].cos().sum()}, {x, w});
      Values out = all_values(y);
      for (const Tensor& t : {first[0], first[1], second[0], second[1]}) {
        const Values v = all_values(t);
        out.insert(out.end(), v.begin(), v.end());
      }
      const auto plain = grad({function(x).sum()}, {x, w});
      for (const Tensor& t : plain) {
        const Values v = all_values(t);
        out.insert(out.end(), v.begin(), v.end());
      }
      return out;
    };
    const Values got = both(g), expected = both(f);
    REQUIRE(got.size() == expected.size());
    // A sum of gradients may be taken in another order.
    for (size_t k = 0; k < got.size(); ++k) {
      CHECK(got[k] == doctest::Approx(expected[k]).epsilon(1e-12));
    }
  }
  CHECK(g.counts().captured == 1);
  CHECK(g.counts().replayed == 7);
}

TEST_CASE("compile: results of which only some have gradients, and more than one") {
  const auto f = [](const Tensor& x) {
    return std::tuple(x.exp(), x.detach() * 2, (x * x).sum(), x.argmax(1));
  };
  const auto g = compile(f);
  for (int i = 0; i < 3; ++i) {
    const Tensor x = randn({3, 4}).requires_grad_();
    const auto [a, b, c, d] = f(x);
    const auto [p, q, r, s] = g(x);
    CHECK(all_values(a) == all_values(p));
    CHECK(all_values(b) == all_values(q));
    CHECK(all_values(d) == all_values(s));
    CHECK_FALSE(q.requires_grad());
    CHECK(all_values(grad({c}, {x})[0]) == all_values(grad({r}, {x})[0]));
    CHECK_THROWS_AS(static_cast<void>(grad({r}, {x})), AutodiffError);  // freed
  }
}

TEST_CASE("compile: shapes, dtypes, modes and parameters are guarded") {
  manual_seed(4);
  Mlp net;
  const auto f = compile(net);
  const auto same = [&](const Tensor& x) {
    manual_seed(8);
    const Values eager = all_values(net(x));
    manual_seed(8);
    CHECK(all_values(f(x)) == eager);
  };
  for (int i = 0; i < 3; ++i) {
    same(randn({2, 8}));
    same(randn({5, 8}));
    same(randn({8, 3}).t());
  }
  CHECK(f.counts().variants == 3);
  net.eval();
  same(randn({2, 8}));
  CHECK(f.counts().variants == 4);
  {
    const NoGradGuard no_grad;
    same(randn({2, 8}));
  }
  CHECK(f.counts().variants == 5);
  // Values written in place are seen; other tensors are captured anew.
  {
    const NoGradGuard no_grad;
    net.parameters()[0].mul_(2);
  }
  same(randn({2, 8}));
  CHECK(f.counts().captured == 5);
  net.load_state_dict(Mlp().state_dict(), true, true);
  same(randn({2, 8}));
  CHECK(f.counts().captured == 6);
  net.double_();
  same(randn({2, 8}, {.dtype = f64}));
  CHECK(f.counts().variants == 1);
}

TEST_CASE("compile: one tensor twice, other numbers of arguments, and threads") {
  struct Sum {
    Tensor operator()(const Tensor& a, const Tensor& b) const { return a * 2 + b; }
    Tensor operator()(const Tensor& a) const { return a * 3; }
  };
  const auto f = compile(Sum());
  for (int i = 0; i < 3; ++i) {
    const Tensor a = randn({3}), b = randn({3});
    CHECK(all_values(f(a, b)) == all_values(a * 2 + b));
    CHECK(all_values(f(a, a)) == all_values(a * 2 + a));
    CHECK(all_values(f(a)) == all_values(a * 3));
  }
  CHECK(f.counts().captured == 3);
  const auto g = compile([](const Tensor& x) { return x.exp() * x; });
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const Tensor x = full({5}, t + 0.01 * i);
        wrong += all_values(g(x)) != all_values(x.exp() * x);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("compile: views and writes in place") {
  const auto f = [](const Tensor& x) {
    Tensor y = x.clone();
    Tensor row = y.select(0, 1);
    row.mul_(3);
    y.narrow(1, 0, 2).add_(x.narrow(1, 1, 2));
    return std::pair(y, row.sum());
  };
  const auto g = compile(f);
  for (int i = 0; i < 3; ++i) {
    const Tensor x = randn({3, 4}).requires_grad_();
    const auto [a, b] = f(x);
    const auto [c, d] = g(x);
    CHECK(all_values(a) == all_values(c));
    CHECK(all_values(b) == all_values(d));
    CHECK(all_values(grad({a.square().sum() + b}, {x})[0]) ==
          all_values(grad({c.square().sum() + d}, {x})[0]));
  }
  // An argument that is written, and a view of it that comes back.
  const auto h = compile([](const Tensor& x) {
    Tensor y = x;
    y.add_(1);
    return y.view({-1});
  });
  for (int i = 0; i < 3; ++i) {
    const Tensor x = zeros({2, 2});
    const Tensor y = h(x);
    CHECK(all_values(x) == Values(4, 1.0));
    Tensor again = y;
    again.mul_(5);
    CHECK(all_values(x) == Values(4, 5.0));
  }
  CHECK(h.counts().replayed == 2);
}

TEST_CASE("compile: what depends on values is an error that names the row, or eager") {
  const auto f = [](const Tensor& x) { return x.sum().item<double>() > 0 ? x + 1 : x - 1; };
  const auto strict = compile(f, {.fullgraph = true});
  CHECK_THROWS_WITH_AS(strict(ones({3})), doctest::Contains("float_into_data"),
                       graph::CaptureError);
  // A condition that stays is compared in each replay; another value is another variant.
  const auto sign =
      compile([](const Tensor& x) { return x.sum().gt(0).item<bool>() ? x + 1 : x - 1; });
  for (const double v : {1.0, 2.0, -1.0, 3.0, -5.0}) {
    const Tensor x = full({3}, v);
    CHECK(all_values(sign(x)) == all_values(v > 0 ? x + 1 : x - 1));
  }
  CHECK(sign.counts().variants == 2);
  CHECK(sign.counts().replayed == 3);
  // Reads that no graph can hold.
  const auto host = compile([](const Tensor& x) { return linalg::inv(x); });
  for (int i = 0; i < 3; ++i) {
    const Tensor x = eye(3) * (i + 1);
    CHECK(all_values(host(x)) == all_values(linalg::inv(x)));
  }
  CHECK(host.counts().eager == 2);
  CHECK(host.explain().find("eager: capture:") != std::string::npos);
}

TEST_CASE("compile: explain says what rows take, of the replays that are measured") {
  const Tensor w = randn({96, 96});
  const auto f = compile([w](const Tensor& x) { return x.matmul(w).matmul(w).relu().sum(); });
  const Tensor x = randn({96, 96});
  f(x);
  f(x);  // the first replay
  CHECK(f.explain().find("measured") == std::string::npos);
  f(x);
  CHECK(f.explain().find("1 replay measured, ") != std::string::npos);
  for (int i = 0; i < 30; ++i) f(x);
  const std::string text = f.explain();
  CHECK(text.find("16 replays measured, ") != std::string::npos);
  CHECK(text.find(" 2 x float_matmul\n") != std::string::npos);
  double shares = 0.0;
  for (size_t at = text.find(" %  "); at != std::string::npos; at = text.find(" %  ", at + 1)) {
    shares += std::stod(text.substr(at - 5, 5));
  }
  CHECK(shares == doctest::Approx(100.0).epsilon(0.003));  // each is rounded to 0.1
}

TEST_CASE("compile: an index out of range is refused in a replay too") {
  const Tensor table = randn({5, 2});
  const auto f = compile([table](const Tensor& i) { return functional::embedding(i, table); });
  CHECK(f(tensor({0, 4})).shape() == Shape{2, 2});
  CHECK(all_values(f(tensor({1, 2}))) == all_values(table.narrow(0, 1, 2)));
  CHECK_THROWS_AS(f(tensor({1, 5})), IndexError);
  CHECK(f.counts().replayed == 1);
}

TEST_CASE("compile: ten thousand replays hold no more memory than ten") {
  manual_seed(1);
  Mlp net;
  optim::AdamW optimizer(net.parameters(), {.lr = 1e-4});
  const auto step = compile([&](const Tensor& x) {
    net.zero_grad();
    const Tensor loss = net(x).square().mean();
    loss.backward_accumulate();
    optimizer.step();
    return loss;
  });
  const Tensor x = randn({4, 8});
  for (int i = 0; i < 10; ++i) step(x);
  const auto before = memory_stats().bytes_in_use;
  for (int i = 0; i < 10'000; ++i) step(x);
  CHECK(memory_stats().bytes_in_use == before);
  CHECK(step.counts().captured <= 3);
}

}  // namespace kiln
