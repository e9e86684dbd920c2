// What is packed of weights and kept beside them: the bits are those of packing anew, whatever is
// written meanwhile, and the memory comes back.

#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/core/kept_data.h"
#include "kiln/kiln.h"
#include "kiln/tensor/interop.h"

using namespace kiln;
namespace F = kiln::functional;

namespace {

// Turns keeping off, or on, for a scope.
struct Keeping {
  explicit Keeping(bool enabled) { kiln::detail::set_keeping_enabled(enabled); }
  ~Keeping() { kiln::detail::set_keeping_enabled(true); }
};

struct Call {
  const char* name;
  Tensor weight;
  std::function<Tensor(const Tensor& weight)> f;

  Tensor anew() const {
    const Keeping off(false);
    return f(weight);
  }
};

std::vector<Call> calls() {
  manual_seed(5);
  const Tensor rows = randn({64, 256}), more = randn({200, 700}), bias = randn({300});
  const Tensor image = randn({1, 32, 20, 20}), two = randn({2, 8, 40, 24});
  const Tensor wide = randn({1, 64, 24, 24}), few = randn({1, 64, 14, 14});
  const Tensor fewer = randn({1, 160, 7, 7}), deep = randn({1, 1100, 5, 6});
  return {
      {"linear", randn({300, 256}), [=](const Tensor& w) { return F::linear(rows, w, bias); }},
      {"linear of several runs", randn({150, 700}),
       [=](const Tensor& w) { return F::linear(more, w); }},
      {"linear, transposed weight", randn({256, 300}),
       [=](const Tensor& w) { return F::linear(rows, w.t(), bias); }},
      {"linear, part of a weight", randn({600, 256}),
       [=](const Tensor& w) { return F::linear(rows, w.narrow(0, 200, 300), bias); }},
      {"linear and gelu", randn({300, 256}),
       [=](const Tensor& w) {
         return F::linear(rows, w, bias, F::LinearOptions{.activation = Activation::gelu});
       }},
      {"linear in f64", randn({300, 256}, {.dtype = f64}),
       [x = rows.to(f64)](const Tensor& w) { return F::linear(x, w); }},
      {"linear in bf16", randn({300, 256}, {.dtype = bf16}),
       [x = rows.to(bf16), b = bias.to(bf16)](const Tensor& w) { return F::linear(x, w, b); }},
      {"linear in bf16, part of a transposed weight", randn({251, 600}, {.dtype = bf16}),
       [x = rows.to(bf16)](const Tensor& w) {
         return F::linear(x.narrow(1, 0, 251), w.narrow(1, 200, 300).t());
       }},
      {"convolution in place", randn({48, 32, 5, 5}),
       [=](const Tensor& w) { return F::conv2d(image, w); }},
      {"convolution of packed patches", randn({24, 8, 7, 7}),
       [=](const Tensor& w) { return F::conv2d(two, w, {}, 3, 3); }},
      {"convolution of few pixels", randn({96, 64, 1, 1}),
       [=](const Tensor& w) { return F::conv2d(few, w, bias.narrow(0, 0, 96)); }},
      {"of 49 pixels, channels that fill no panel", randn({97, 160, 1, 1}),
       [=](const Tensor& w) { return F::conv2d(fewer, w); }},
      {"of two runs", randn({33, 1100, 1, 1}),
       [=](const Tensor& w) { return F::conv2d(deep, w, bias.narrow(0, 0, 33)); }},
      {"of few pixels, windows and strides", randn({65, 64, 3, 3}),
       [=](const Tensor& w) { return F::conv2d(few, w, {}, 2, 1); }},
      {"of few pixels, clamped", randn({130, 64, 1, 1}),
       [=](const Tensor& w) {
         return F::conv2d(few, w, bias.narrow(0, 0, 130), 1, 0, 1, 1, {Activation::relu6, {}});
       }},
      {"of few pixels, with a residual", randn({160, 160, 1, 1}),
       [=](const Tensor& w) {
         return F::conv2d(fewer, w, {}, 1, 0, 1, 1, {Activation::relu, fewer});
       }},
      {"of few pixels in f64", randn({40, 64, 1, 1}, {.dtype = f64}),
       [x = few.to(f64)](const Tensor& w) { return F::conv2d(x, w); }},
      {"convolution in groups", randn({64, 16, 3, 3}),
       [=](const Tensor& w) { return F::conv2d(image, w, {}, 2, 1, 1, 2); }},
      {"convolution of bf16", randn({48, 32, 5, 5}, {.dtype = bf16}),
       [x = image.to(bf16)](const Tensor& w) { return F::conv2d(x, w); }},
      {"of bf16, neighbours as words", randn({48, 32, 4, 4}, {.dtype = bf16}),
       [x = image.to(bf16)](const Tensor& w) { return F::conv2d(x, w, {}, 2); }},
      {"of bf16, few pixels", randn({97, 160, 3, 3}, {.dtype = bf16}),
       [x = fewer.to(bf16)](const Tensor& w) { return F::conv2d(x, w, {}, 1, 1); }},
      {"Winograd's", randn({64, 64, 3, 3}),
       [=](const Tensor& w) { return F::conv2d(wide, w, {}, 1, 1); }},
      {"Winograd's, one block", randn({128, 32, 3, 3}),
       [=](const Tensor& w) { return F::conv2d(image, w, {}, 1, 1); }},
  };
}

}  // namespace

TEST_CASE("kept weights: the bits of packing anew, before and after each kind of write") {
  const NoGradGuard no_grad;
  for (Call& call : calls()) {
    CAPTURE(call.name);
    const auto check = [&] {
      const Tensor want = call.anew();
      for (int i = 0; i < 5; ++i) CHECK(call.f(call.weight).equal(want));
    };
    check();
    call.weight.mul_(0.5);
    check();
    call.weight.copy_(randn(call.weight.shape(), {.dtype = call.weight.dtype()}));
    check();
    call.weight.select(0, 3).fill_(2.0);  // through a view
    check();
    call.weight.variable_data().select(0, 1).mul_(1.5);  // which its version does not count
    check();
    normal_(call.weight);
    check();
  }
}

TEST_CASE("kept weights: raw pointers, and tensors over memory of others, are read anew") {
  const NoGradGuard no_grad;
  const Tensor x = randn({64, 128});
  Tensor weight = randn({64, 128});
  for (int i = 0; i < 4; ++i) F::linear(x, weight);
  float* const raw = weight.data_ptr<float>();
  for (int i = 0; i < 4; ++i) {
    raw[7] = static_cast<float>(i);  // no version counts this
    CHECK(F::linear(x, weight).equal(F::linear(x, weight.clone())));
  }
  std::vector<float> mine(64 * 128, 0.5F);
  const Tensor over = interop::from_blob(mine.data(), {64, 128}, {128, 1}, f32, nullptr, nullptr);
  for (int i = 0; i < 5; ++i) {
    mine[9] = static_cast<float>(i);
    CHECK(F::linear(x, over).equal(F::linear(x, over.clone())));
  }
}

TEST_CASE("kept weights: memory comes back with the weight, with a write, and for want of it") {
  const NoGradGuard no_grad;
  const Tensor x = randn({128, 512});
  const auto in_use = [] { return static_cast<int64_t>(memory_stats().bytes_in_use); };
  const int64_t before = in_use();
  const int64_t size = 512 * 1024 * 4;
  {
    const Tensor weight = randn({1024, 512});
    for (int i = 0; i < 2; ++i) F::linear(x, weight);
    CHECK(in_use() - before < size + size / 2);
    for (int i = 0; i < 3; ++i) F::linear(x, weight);
    CHECK(in_use() - before > size + size / 2);  // kept
    CHECK(in_use() - before < 3 * size);
    empty_cache();
    CHECK(in_use() - before < size + size / 2);
    for (int i = 0; i < 4; ++i) F::linear(x, weight);
    CHECK(in_use() - before > size + size / 2);
  }
  CHECK(in_use() - before < size / 2);
  // A step of training drops what inference kept.
  Tensor weight = randn({1024, 512}).requires_grad_();
  for (int i = 0; i < 4; ++i) F::linear(x, weight);
  CHECK(in_use() - before > size + size / 2);
  weight.mul_(0.9);
  {
    const EnableGradGuard recording;
    CHECK(F::linear(x, weight.detach()).defined());
  }
  CHECK(in_use() - before < size + size / 2);
}

TEST_CASE("kept weights: nothing is kept while gradients are recorded") {
  const Tensor x = randn({128, 512});
  const Tensor weight = randn({1024, 512}).requires_grad_();
  const int64_t before = static_cast<int64_t>(memory_stats().bytes_in_use);
  for (int i = 0; i < 6; ++i) F::linear(x, weight);
  CHECK(static_cast<int64_t>(memory_stats().bytes_in_use) - before < 512 * 1024);
}

TEST_CASE("kept weights: several threads, of which one writes between rounds") {
  const NoGradGuard no_grad;
  const Tensor x = randn({64, 256});
  Tensor weight = randn({256, 256});
  std::atomic<int> wrong{0};
  for (int round = 0; round < 5; ++round) {
    const Tensor want = [&] {
      const Keeping off(false);
      return F::linear(x, weight);
    }();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        const NoGradGuard here;
        for (int i = 0; i < 20; ++i) wrong += !F::linear(x, weight).equal(want);
      });
    }
    for (std::thread& thread : threads) thread.join();
    weight.add_(0.25);
  }
  CHECK(wrong == 0);
}
