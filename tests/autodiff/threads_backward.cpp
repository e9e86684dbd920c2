// Several threads differentiate at once: separate graphs, shared leaves, one shared retained graph.
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <kiln/kiln.h>

using namespace kiln;

namespace {

template <class F>
void in_threads(int count, F f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&f, i] { f(i); });
  for (std::thread& t : threads) t.join();
}

}  // namespace

TEST_CASE("two threads run backward over graphs that share a leaf") {
  Tensor w = full({64}, 2.0).requires_grad_();
  std::vector<double> sums(2);
  in_threads(2, [&](int i) {
    for (int k = 0; k < 50; ++k) {
      const Tensor loss = (w * w * static_cast<double>(i + 1)).sum();
      const Gradients grads = loss.backward();
      sums[static_cast<size_t>(i)] += w.grad(grads)->sum().item();
    }
  });
  CHECK(sums[0] == 50 * 64 * 4.0);
  CHECK(sums[1] == 50 * 64 * 8.0);
}

TEST_CASE("two threads accumulate into one leaf") {
  Tensor w = full({64}, 2.0).requires_grad_();
  in_threads(2, [&](int) {
    for (int k = 0; k < 50; ++k) (w * 3.0).sum().backward_accumulate();
  });
  CHECK(w.grad().sum().item() == 2 * 50 * 64 * 3.0);
}

TEST_CASE("two threads run backward over one retained graph") {
  Tensor w = full({64}, 2.0).requires_grad_();
  Tensor y = w;
  for (int k = 0; k < 20; ++k) y = y * 1.25;
  const Tensor loss = (y * w).sum();
  const double expected = loss.backward({}, true).get(w)->sum().item();
  std::vector<double> found(2);
  in_threads(2, [&](int i) {
    for (int k = 0; k < 20; ++k) {
      found[static_cast<size_t>(i)] = loss.backward({}, true).get(w)->sum().item();
      CHECK_MESSAGE(found[static_cast<size_t>(i)] == expected, "thread ", i);
    }
  });
}

TEST_CASE("a tensor made in one thread dies in another") {
  Tensor y;
  std::thread([&] {
    Tensor x = ones({1000}).requires_grad_();
    y = (x * 2.0).exp().sum();
  }).join();
  const Gradients grads = y.backward();
  CHECK(grads.size() == 1);
  y = Tensor();
}
