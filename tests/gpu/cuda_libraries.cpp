// cuBLASLt and cuDNN on the CUDA driver that tests play, with libraries that tests play
// (tests/gpu_host/fake): they compute what NVIDIA documents, and end the process on what it
// forbids.
#include <cstdlib>
#include <string>

#include <dlfcn.h>
#include <doctest/doctest.h>

#include "kiln/core/accelerator.h"
#include "kiln/kiln.h"
#include "tests/gpu/cuda_part.h"

using namespace kiln;

namespace {

using test::Ended;
using test::has;
using test::say;

// What a library has counted; -1 where it is not open.
int counted(const char* library, const char* function) {
  void* open = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (open == nullptr) return -1;
  const auto count = reinterpret_cast<int (*)()>(dlsym(open, function));
  return count == nullptr ? -1 : count();
}

// Says whether two results are the same but for roundings of sums.
void compare(const char* what, const Tensor& got, const Tensor& wanted, double bound) {
  const Tensor a = got.to("cpu").to(f64);
  const Tensor b = wanted.to(f64);
  const double most = b.abs().max().item<double>();
  const double worst = (a - b).abs().max().item<double>() / most;
  say(worst <= bound ? concat(what, " right") : concat(what, " WRONG: ", worst));
}

void products() {
  manual_seed(1);
  const auto check = [](const char* what, const Tensor& a, const Tensor& b, double bound) {
    compare(what, a.to("cuda").matmul(b.to("cuda")), a.matmul(b), bound);
  };
  const Tensor a = randn({90, 110}), b = randn({110, 70});
  check("f32", a, b, 1e-5);
  check("f64", a.to(f64), b.to(f64), 1e-13);
  check("bf16", a.to(bf16), b.to(bf16), 0.02);
  check("f16", a.to(f16), b.to(f16), 0.003);
  const Tensor at = randn({110, 90}).to("cuda"), bt = randn({70, 110}).to("cuda");
  compare("transposed", at.t().matmul(bt.t()), at.to("cpu").t().matmul(bt.to("cpu").t()), 1e-5);
  const Tensor whole = randn({100, 200}), on_gpu = whole.to("cuda");
  const auto part = [](const Tensor& x) { return x.slice(0, 3, 93).slice(1, 5, 115); };
  compare("a part", part(on_gpu).matmul(b.to("cuda")), part(whole).matmul(b), 1e-5);
  check("batches", randn({5, 60, 40}), randn({5, 40, 50}), 1e-5);
  check("batches that meet one", randn({5, 60, 40}), randn({40, 50}), 1e-5);
  check("one that meets batches", randn({60, 40}), randn({5, 40, 50}), 1e-5);
  const Tensor x = randn({3, 40, 64}), w = randn({50, 64}), bias = randn({50});
  compare("linear", functional::linear(x.to("cuda"), w.to("cuda"), bias.to("cuda")),
          functional::linear(x, w, bias), 1e-5);
  compare(
      "linear bf16",
      functional::linear(x.to(bf16).to("cuda"), w.to(bf16).to("cuda"), bias.to(bf16).to("cuda")),
      functional::linear(x.to(bf16), w.to(bf16), bias.to(bf16)), 0.02);
}

void convolutions() {
  manual_seed(2);
  const auto check = [](const char* what, const Shape& image, const Shape& filter, int64_t stride,
                        int64_t padding, int64_t dilation, int64_t groups) {
    const Tensor x = randn(image), w = randn(filter), bias = randn({filter[0]});
    const auto run = [&](Device device) {
      std::vector<Tensor> v;
      for (const Tensor& t : {x, w, bias}) v.push_back(t.to(device).requires_grad_());
      const Tensor y = functional::conv2d(v[0], v[1], v[2], stride, padding, dilation, groups);
      const Gradients grads = y.square().sum().backward();
      return std::vector<Tensor>{y, *grads.get(v[0]), *grads.get(v[1])};
    };
    const auto ours = run("cuda");
    const auto theirs = run("cpu");
    for (size_t i = 0; i < ours.size(); ++i) {
      compare(concat(what, " ", i).c_str(), ours[i], theirs[i].detach(), 1e-4);
    }
  };
  check("3 x 3", {2, 6, 16, 15}, {16, 6, 3, 3}, 1, 1, 1, 1);
  check("strided", {2, 5, 21, 21}, {12, 5, 5, 5}, 2, 2, 1, 1);
  check("dilated groups", {2, 8, 18, 18}, {16, 4, 3, 3}, 1, 2, 2, 2);
}

// Images channels last: all on the way is, and so are the gradients.
void channels_last() {
  manual_seed(3);
  const Tensor x = randn({4, 8, 18, 18}), w = randn({16, 8, 3, 3});
  const Tensor u = randn({8, 16, 1, 1}), scale = randn({16}), shift = randn({16});
  const auto last = [](const Tensor& t) {
    return t.dim() == 4 ? t.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2}) : t;
  };
  const auto lies_last = [](const Tensor& t) { return t.permute({0, 2, 3, 1}).is_contiguous(); };
  const auto run = [&](Device device, DType dtype) {
    std::vector<Tensor> v;
    for (const Tensor& t : {x, w, u}) {
      const Tensor there = t.detach().to(dtype).to(device);
      v.push_back(device == Device("cpu") ? there.clone() : last(there));
      v.back().requires_grad_();
    }
    for (const Tensor& t : {scale, shift}) {
      v.push_back(t.clone().to(device).requires_grad_());
    }
    Tensor y = functional::conv2d(v[0], v[1], {}, 1, 1);
    y = functional::batch_norm(y, {}, {}, v[3], v[4], true).relu();
    y = functional::max_pool2d(y, 3, 2, 1);
    y = functional::conv2d(y, v[2], {}) + functional::avg_pool2d(v[0], 2);
    const Gradients grads = y.to(f32).square().sum().backward();
    std::vector<Tensor> out = {y};
    for (const Tensor& t : v) out.push_back(*grads.get(t));
    if (device == Device("cpu")) return out;
    for (size_t i = 0; i < 3; ++i) {
      if (i != 2 && !lies_last(out[i])) say(concat("channels last WRONG: tensor ", i));
    }
    return out;
  };
  for (const DType dtype : {f32, bf16}) {
    const auto ours = run("cuda", dtype);
    const auto theirs = run("cpu", dtype);
    for (size_t i = 0; i < ours.size(); ++i) {
      compare(concat("channels last ", to_string(dtype), " ", i).c_str(), ours[i],
              theirs[i].detach(), dtype == f32 ? 1e-4 : 0.05);
    }
  }
}

}  // namespace

TEST_CASE("cuda libraries part" * doctest::skip()) {
  products();
  convolutions();
  say(concat("convolutions ", counted("libcudnn.so.9", "kiln_fake_cudnn_convolutions")));
  channels_last();
  say(concat("channels last ", counted("libcudnn.so.9", "kiln_fake_cudnn_channels_last")));
  say(concat("products ", counted("libcublasLt.so.13", "kiln_fake_cublaslt_products")));
}

TEST_CASE("cuda: products and convolutions by NVIDIA's libraries") {
  const Ended ended = test::run_part("cuda libraries part", "", "");
  CAPTURE(ended.text);
  CHECK(ended.status == 0);
  CHECK_FALSE(has(ended, "WRONG"));
  CHECK(has(ended, "linear bf16 right"));
  CHECK(has(ended, "dilated groups 2 right"));
  CHECK(has(ended, "products 11"));
  CHECK(has(ended, "convolutions 9"));
  CHECK(has(ended, "channels last bfloat16 5 right"));
  CHECK(has(ended, "channels last 6"));
}

TEST_CASE("cuda: the same without the libraries") {
  const Ended ended =
      test::run_part("cuda libraries part", "", "", "KILN_CUBLASLT=/nowhere KILN_CUDNN=/nowhere");
  CAPTURE(ended.text);
  CHECK(ended.status == 0);
  CHECK_FALSE(has(ended, "WRONG"));
  CHECK(has(ended, "products -1"));
  CHECK(has(ended, "convolutions -1"));
}
