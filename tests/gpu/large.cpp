// Shapes at which the GPU backend takes other kernels: elements in packs, rows that a group holds,
// channels in chunks, matrix units and NVIDIA's libraries where there are such. Each result is held
// against the CPU's of 64-bit floats, of operands that are the same values.
#include <cmath>
#include <functional>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "tests/gpu/device_under_test.h"

using namespace kiln;

namespace {

// The largest difference, in units of the largest magnitude expected (or of 0.1).
double difference(const Tensor& got, const Tensor& wanted) {
  const Tensor a = got.to("cpu").to(f64);
  const Tensor b = wanted.to(f64);
  REQUIRE(a.shape() == b.shape());
  if (b.numel() == 0) return 0.0;
  const double most = std::max(0.1, b.abs().max().item<double>());
  return (a - b).abs().max().item<double>() / most;
}

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

// `f` and its gradients by every operand, of floats of `dtype`; `sum` is how many numbers each
// result adds.
void check(const char* name, const Function& f, const std::vector<Tensor>& operands, DType dtype,
           double sum = 1.0) {
  CAPTURE(name);
  CAPTURE(to_string(dtype));
  const double step = dtype == f32 ? 0x1p-23 : dtype == f16 ? 0x1p-10 : 0x1p-7;
  const double bound = step * (dtype == f32 ? 2.0 * std::sqrt(sum) + 6.0 : 3.0);
  std::vector<Tensor> on_gpu;
  std::vector<Tensor> on_cpu;
  for (const Tensor& x : operands) {
    const Tensor narrow = x.to(dtype);
    on_gpu.push_back(narrow.to(test::gpu_device()).requires_grad_());
    on_cpu.push_back(narrow.to(f64).requires_grad_());
  }
  const Tensor y = f(on_gpu);
  const Tensor expected = f(on_cpu);
  CHECK(difference(y, expected) <= bound);
  const Tensor g = randn(expected.shape(), {.dtype = f64}).to(dtype);
  const Gradients ours = (y * g.to(test::gpu_device())).sum().backward();
  const Gradients theirs = (expected * g.to(f64)).sum().backward();
  for (size_t i = 0; i < operands.size(); ++i) {
    CAPTURE(i);
    CHECK(difference(*ours.get(on_gpu[i]), *theirs.get(on_cpu[i])) <= 2.0 * bound);
  }
}

// Those of 16 bits take the same ways.
const DType kFloats[] = {f32, bf16};

}  // namespace

TEST_CASE("gpu: elements in packs") {
  if (!test::has_gpu()) return;
  manual_seed(1);
  for (const DType dtype : kFloats) {
    for (const int64_t n : {4096, 5001, 20000}) {
      check(
          "product", [](const auto& x) { return x[0] * x[1]; }, {randn({n}), randn({n})}, dtype);
    }
    check(
        "a row, a column and a number", [](const auto& x) { return x[0] * x[1] + x[2] - x[3]; },
        {randn({64, 96}), randn({96}), randn({64, 1}), randn(Shape{})}, dtype, 64.0);
    check(
        "slices", [](const auto& x) { return x[0].slice(1, 8, 72) + x[0].slice(1, 3, 67); },
        {randn({80, 96})}, dtype);
    check(
        "transposed", [](const auto& x) { return x[0].t() + x[1]; },
        {randn({72, 80}), randn({80, 72})}, dtype);
    const Tensor x = randn({5003}).to(dtype);
    CHECK(x.to(test::gpu_device()).to(f64).to("cpu").equal(x.to(f64)));
    CHECK(x.to(test::gpu_device()).to(f32).to(dtype).to("cpu").equal(x));
  }
  const Tensor whole = arange(9001).to(test::gpu_device());
  CHECK((whole % 7 == 0).to("cpu").equal(arange(9001) % 7 == 0));
  Tensor bits = arange(6000).remainder(3).to(i8).to(test::gpu_device());
  bits.add_(1);
  CHECK(bits.to("cpu").equal((arange(6000).remainder(3) + 1).to(i8)));
  const Tensor zero = (arange(8000) - 7990).to(test::gpu_device());
  CHECK_THROWS_WITH_AS((arange(8000).to(test::gpu_device()) % zero).to("cpu"),
                       doctest::Contains("division by zero"), ValueError);
}

TEST_CASE("gpu: rows that are read once") {
  if (!test::has_gpu()) return;
  manual_seed(2);
  for (const DType dtype : kFloats) {
    for (const int64_t n : {1000, 1001, 4096}) {
      const Tensor x = randn({12, n});
      check(
          "softmax", [](const auto& v) { return v[0].softmax(1); }, {x}, dtype);
      check(
          "log_softmax", [](const auto& v) { return v[0].log_softmax(1); }, {x}, dtype, 64.0);
      check(
          "sum", [](const auto& v) { return v[0].sum(1); }, {x}, dtype, static_cast<double>(n));
      check(
          "mean of columns", [](const auto& v) { return v[0].t().mean(0); }, {x}, dtype, 64.0);
      check(
          "layer_norm",
          [n](const auto& v) { return functional::layer_norm(v[0], Shape{n}, v[1], v[2]); },
          {x, randn({n}), randn({n})}, dtype, 256.0);
      const Tensor target = randint(0, n, {12}, {.dtype = i64});
      check(
          "cross_entropy",
          [&](const auto& v) { return functional::cross_entropy(v[0], target.to(v[0].device())); },
          {x * 3.0}, dtype, 64.0);
    }
    check(
        "sum of all", [](const auto& v) { return v[0].sum(); }, {randn({300, 700})}, dtype, 1e4);
    check(
        "sum of few columns", [](const auto& v) { return v[0].sum(0); }, {randn({700, 304})}, dtype,
        700.0);
    check(
        "largest of columns", [](const auto& v) { return v[0].amax(0); }, {randn({2000, 96})},
        dtype);
    check(
        "sum of columns", [](const auto& v) { return v[0].sum(0); }, {randn({3000, 300})}, dtype,
        3000.0);
  }
  // NaN, infinities and rows without a finite number.
  Tensor odd = randn({4, 2048});
  const double inf = std::numeric_limits<double>::infinity();
  odd.select(0, 0).slice(0, 5, 6).fill_(std::numeric_limits<double>::quiet_NaN());
  odd.select(0, 1).slice(0, 2000, 2001).fill_(-inf);
  odd.select(0, 2).fill_(-inf);
  odd.select(0, 3).slice(0, 7, 8).fill_(inf);
  const Tensor target = randint(0, 2000, {4}, {.dtype = i64});
  const Tensor on_gpu = odd.to(test::gpu_device());
  const auto loss = [&](const Tensor& x) -> Tensor {
    return functional::cross_entropy(x, target.to(x.device()),
                                     {.reduction = functional::Reduction::none})
        .to("cpu");
  };
  const std::vector<float> a = loss(on_gpu).to_vector<float>();
  const std::vector<float> b = loss(odd).to_vector<float>();
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(std::isnan(a[i]) == std::isnan(b[i]));
    if (std::isnan(a[i])) continue;
    CHECK((a[i] == b[i] || a[i] == doctest::Approx(b[i]).epsilon(1e-5)));
  }
}

TEST_CASE("gpu: channels in chunks") {
  if (!test::has_gpu()) return;
  manual_seed(3);
  for (const DType dtype : kFloats) {
    for (const Shape& shape : {Shape{20, 6, 24, 24}, Shape{9, 5, 7, 9}, Shape{64, 3, 4, 4}}) {
      const int64_t channels = shape[1];
      const auto norm = [](const auto& v) {
        return functional::batch_norm(v[0], {}, {}, v[1], v[2], true);
      };
      // A mean that is large beside the spread: sums of squares would lose it.
      check("batch_norm", norm, {randn(shape) + 3.0, randn({channels}), randn({channels})}, dtype,
            4096.0);
    }
    check(
        "group_norm", [](const auto& v) { return functional::group_norm(v[0], 3, v[1], v[2]); },
        {randn({6, 12, 16, 16}), randn({12}), randn({12})}, dtype, 1024.0);
  }
}

namespace {

// The same values, images [N, C, ..] in memory as [N, .., C].
Tensor last(const Tensor& x) { return movedim(movedim(x, {1}, {-1}).contiguous(), {-1}, {1}); }
bool lies_last(const Tensor& x) { return movedim(x, {1}, {-1}).is_contiguous(); }

}  // namespace

TEST_CASE("gpu: images channels last") {
  if (!test::has_gpu()) return;
  manual_seed(5);
  const auto norm = [](const auto& v) {
    return functional::batch_norm(last(v[0]), {}, {}, v[1], v[2], true);
  };
  const auto max_pool = [](const auto& v) {
    return functional::max_pool2d(last(v[0]), Sizes(3), Sizes(2), Sizes(1));
  };
  const auto mean_pool = [](const auto& v) {
    return functional::avg_pool2d(last(v[0]), Sizes(3), Sizes(2), Sizes(1));
  };
  const auto mixed = [](const auto& v) { return (last(v[0]) * v[1]).relu() + v[2]; };
  for (const DType dtype : kFloats) {
    // Whole packs and not, more channels than a group's work-items have, few rows and many.
    for (const Shape& shape :
         {Shape{6, 16, 17, 13}, Shape{3, 5, 9, 31}, Shape{1, 1096, 3, 2}, Shape{2, 24, 3, 4, 5}}) {
      CAPTURE(to_string(shape));
      const int64_t channels = shape[1];
      check("batch_norm", norm, {randn(shape) + 3.0, randn({channels}), randn({channels})}, dtype,
            4096.0);
      Shape each = Shape::filled(shape.rank(), 1);
      each[1] = channels;
      check("elementwise", mixed, {randn(shape), randn(each), randn(shape)}, dtype, 4096.0);
    }
    for (const Shape& shape : {Shape{4, 16, 26, 34}, Shape{2, 3, 40, 20}}) {
      check("max_pool2d", max_pool, {randn(shape)}, dtype, 4.0);
      check("avg_pool2d", mean_pool, {randn(shape)}, dtype, 9.0);
    }
    // Rows of a matrix are columns of channels too.
    check("batch_norm", norm, {randn({600, 24}) + 3.0, randn({24}), randn({24})}, dtype, 600.0);
  }
  const Tensor x = last(randn({2, 8, 6, 6}).to(test::gpu_device()));
  CHECK(lies_last(x.relu() + 1.0));
  CHECK(lies_last(x + randn({2, 8, 6, 6}).to(test::gpu_device())));
  CHECK(lies_last(functional::max_pool2d(x, Sizes(2))));
  CHECK(lies_last(functional::batch_norm(x, {}, {}, {}, {}, true)));
  CHECK((x * 2.0).reshape({2, -1}).sum(1).numel() == 2);
}

TEST_CASE("gpu: a training step of a network that lies channels last") {
  if (!test::has_gpu()) return;
  const auto trained = [](Device device, bool channels_last) {
    manual_seed(8);
    nn::Sequential net(nn::Conv2d(3, 16, 3, nn::Conv2dOptions{.padding = 1}), nn::BatchNorm2d(16),
                       nn::ReLU(), nn::MaxPool2d(2), nn::Conv2d(16, 16, 3), nn::Flatten(),
                       nn::Linear(16 * 5 * 5, 4));
    const Tensor x = randn({8, 3, 14, 14}).to(device);
    net.to(device);
    if (channels_last) net.to(MemoryFormat::channels_last);
    optim::SGD rule(net.parameters(), optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
    for (int i = 0; i < 3; ++i) {
      const Tensor y = net.forward(channels_last ? last(x) : x);
      rule.step(y.square().mean().backward());
    }
    std::vector<Tensor> out;
    for (const auto& [name, t] : net.state_dict()) out.push_back(t.to("cpu"));
    return out;
  };
  const auto cpu = trained("cpu", false);
  const auto gpu = trained(test::gpu_device(), true);
  REQUIRE(cpu.size() == gpu.size());
  for (size_t i = 0; i < cpu.size(); ++i) CHECK(difference(gpu[i], cpu[i]) < 1e-4);
}

TEST_CASE("gpu: products that a library may take") {
  if (!test::has_gpu()) return;
  manual_seed(4);
  const auto product = [](const auto& v) { return v[0].matmul(v[1]); };
  for (const DType dtype : kFloats) {
    check("square", product, {randn({96, 96}), randn({96, 96})}, dtype, 96.0);
    check("tiles", product, {randn({200, 144}), randn({144, 264})}, dtype, 264.0);
    check("odd", product, {randn({131, 77}), randn({77, 93})}, dtype, 77.0);
    check(
        "transposed", [](const auto& v) { return v[0].t().matmul(v[1].t()); },
        {randn({128, 160}), randn({96, 128})}, dtype, 128.0);
    check("batches", product, {randn({6, 70, 64}), randn({6, 64, 72})}, dtype, 64.0);
    check("batches that meet one", product, {randn({5, 40, 64}), randn({64, 72})}, dtype, 200.0);
    check(
        "heads",
        [](const auto& v) {
          return v[0].permute({0, 2, 1, 3}).matmul(v[1].permute({0, 2, 3, 1}));
        },
        {randn({2, 50, 4, 32}), randn({2, 60, 4, 32})}, dtype, 60.0);
    check("one for some batches", product, {randn({3, 4, 40, 32}), randn({4, 32, 40})}, dtype,
          120.0);
    check(
        "steps of two", [](const auto& v) { return v[0].slice(1, 0, 128, 2).matmul(v[1]); },
        {randn({80, 128}), randn({64, 96})}, dtype, 80.0);
    check(
        "linear", [](const auto& v) { return functional::linear(v[0], v[1], v[2]); },
        {randn({4, 33, 96}), randn({80, 96}), randn({80})}, dtype, 132.0);
    check(
        "linear without a bias", [](const auto& v) { return functional::linear(v[0], v[1]); },
        {randn({200, 64}), randn({48, 64})}, dtype, 200.0);
  }
}

TEST_CASE("gpu: convolutions that a library may take") {
  if (!test::has_gpu()) return;
  manual_seed(5);
  for (const DType dtype : {f32, bf16}) {
    const auto conv = [](int64_t stride, int64_t padding, int64_t dilation, int64_t groups) {
      return [=](const std::vector<Tensor>& v) {
        return functional::conv2d(v[0], v[1], v[2], stride, padding, dilation, groups);
      };
    };
    check("3 x 3", conv(1, 1, 1, 1), {randn({3, 8, 14, 15}), randn({16, 8, 3, 3}), randn({16})},
          dtype, 700.0);
    check("strided", conv(2, 3, 1, 1), {randn({2, 3, 30, 30}), randn({16, 3, 7, 7}), randn({16})},
          dtype, 500.0);
    check("1 x 1", conv(1, 0, 1, 1), {randn({4, 32, 9, 9}), randn({24, 32, 1, 1}), randn({24})},
          dtype, 400.0);
    check("dilated groups", conv(1, 2, 2, 2),
          {randn({2, 8, 20, 20}), randn({16, 4, 3, 3}), randn({16})}, dtype, 900.0);
    check("depthwise", conv(1, 1, 1, 12),
          {randn({4, 12, 28, 28}), randn({12, 1, 3, 3}), randn({12})}, dtype, 3200.0);
  }
}

TEST_CASE("gpu: attention of 16-bit floats") {
  if (!test::has_gpu()) return;
  manual_seed(6);
  struct Form {
    int64_t batch, heads, key_heads, queries, keys, width, value_width;
    bool causal;
  };
  const Form forms[] = {
      {2, 3, 3, 128, 128, 64, 64, false},  {1, 2, 2, 200, 200, 64, 64, true},
      {1, 4, 2, 65, 130, 32, 32, false},   {2, 2, 1, 70, 70, 40, 24, true},
      {1, 2, 2, 130, 190, 128, 128, true}, {1, 2, 2, 190, 100, 128, 96, true},
      {1, 1, 1, 1, 300, 64, 64, false},    {1, 2, 2, 300, 1, 64, 64, true},
      {1, 1, 1, 257, 129, 8, 8, false},
  };
  for (const DType dtype : {bf16, f16}) {
    for (const Form& f : forms) {
      CAPTURE(f.queries);
      CAPTURE(f.keys);
      CAPTURE(f.width);
      check(
          "attention",
          [&](const auto& v) {
            return functional::scaled_dot_product_attention(v[0], v[1], v[2], {}, 0.0, f.causal, {},
                                                            true);
          },
          {randn({f.batch, f.heads, f.queries, f.width}),
           randn({f.batch, f.key_heads, f.keys, f.width}),
           randn({f.batch, f.key_heads, f.keys, f.value_width})},
          dtype);
    }
  }
}

TEST_CASE("gpu: optimizers' steps in packs") {
  if (!test::has_gpu()) return;
  const auto trained = [](Device device) {
    manual_seed(7);
    nn::Linear first(64, 70);  // weights of 4480 and 210 elements, biases of 70 and 3
    nn::Linear second(70, 3);
    const Tensor x = randn({8, 64}).to(device);
    first.to(device);
    second.to(device);
    std::vector<optim::AdamW> rules;
    rules.emplace_back(first.parameters(), optim::AdamWOptions{.lr = 0.01, .weight_decay = 0.1});
    rules.emplace_back(second.parameters(), optim::AdamWOptions{.lr = 0.01, .weight_decay = 0.1});
    for (int i = 0; i < 3; ++i) {
      const Gradients grads = second.forward(first.forward(x)).square().sum().backward();
      for (auto& rule : rules) rule.step(grads);
    }
    return std::vector<Tensor>{first.weight->to("cpu"), first.bias->to("cpu"),
                               second.weight->to("cpu"), second.bias->to("cpu")};
  };
  const auto cpu = trained("cpu");
  const auto gpu = trained(test::gpu_device());
  for (size_t i = 0; i < cpu.size(); ++i) CHECK(difference(gpu[i], cpu[i]) < 1e-4);
}
