// The device (device_under_test.h): its name, its tensors and views, its memory, its errors.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "tests/gpu/device_under_test.h"

using namespace kiln;

namespace {

TensorOptions on_gpu(DType dtype = f32) { return {.dtype = dtype, .device = test::gpu_device()}; }

std::string message_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the gpu is a device") {
  if (!test::has_gpu()) return;
  CHECK(to_string(test::gpu_device()) == test::gpu().name);
  CHECK(Device(std::string_view(concat(test::gpu().name, ":0"))) == test::gpu_device());
  CHECK(test::gpu().device_count() > 0);
  CHECK(test::gpu().absence() == "");
  const auto properties = test::gpu().properties(0);
  CHECK(!properties.name.empty());
  CHECK(properties.memory_bytes > 0);
  const Tensor x = tensor({1.0, 2.0, 3.0}, on_gpu());
  CHECK(x.device() == test::gpu_device());
  CHECK((x * 2.0 + 1.0).to_vector<float>() == std::vector<float>{3, 5, 7});
  CHECK(x.to("cpu").device() == Device("cpu"));
  CHECK(x.to("cpu").to(test::gpu_device()).sum().item<float>() == 6.0f);
}

TEST_CASE("gpu: more devices than there are, and mixed devices, are errors") {
  if (!test::has_gpu()) return;
  const int count = test::gpu().device_count();
  const std::string name = concat(test::gpu().name, ":", count);
  CHECK(contains(message_of([&] { zeros({2}, {.device = Device(std::string_view(name))}); }),
                 "expected 0 to"));
  CHECK_THROWS_AS(test::gpu().memory_stats(count), DeviceError);
  CHECK_THROWS_AS(test::gpu().properties(-1), DeviceError);
  CHECK_THROWS_AS(zeros({2}, on_gpu()) + zeros({2}), DeviceError);
}

TEST_CASE("gpu: views share memory, and writes through them have gradients") {
  if (!test::has_gpu()) return;
  Tensor x = arange(12, on_gpu()).reshape({3, 4});
  x.transpose(0, 1).select(0, 1).fill_(-1.0);
  CHECK(x.to_vector<float>() == std::vector<float>{0, -1, 2, 3, 4, -1, 6, 7, 8, -1, 10, 11});
  x.select(0, 0).copy_(x.select(0, 2).flip({0}));
  CHECK(x.select(0, 0).to_vector<float>() == std::vector<float>{11, 10, -1, 8});
  Tensor w = ones({2, 2}, {.dtype = f32, .device = test::gpu_device(), .requires_grad = true});
  const Tensor y = w * 3.0;
  y.select(0, 0).mul_(2.0);
  const Gradients grads = y.sum().backward();
  CHECK(grads.get(w)->to_vector<float>() == std::vector<float>{6, 6, 3, 3});
}

TEST_CASE("gpu: a bad value in a kernel is the op's error at the next wait") {
  if (!test::has_gpu()) return;
  const Tensor x = arange(4, on_gpu());
  const Tensor bad = tensor({0, 4}, on_gpu(i64));
  // Enqueued; nothing is known yet.
  const auto late = [&] {
    return message_of([&] {
      const Tensor y = x.gather(0, bad);
      test::gpu().synchronize(0);
    });
  };
  CHECK(contains(late(), "gather: index out of range"));
  CHECK_THROWS_AS(x.gather(0, bad).to_vector<float>(), IndexError);
  CHECK_THROWS_AS(x.index_select(0, tensor({-1}, on_gpu(i64))).to_vector<float>(), Error);
  // It is told once, and the device goes on.
  test::gpu().synchronize(0);
  CHECK(x.sum().item<float>() == 6.0f);
  const Tensor n = tensor({6, 7}, on_gpu(i64));
  CHECK_THROWS_AS(n.remainder(tensor({2, 0}, on_gpu(i64))).to_vector<int64_t>(), ValueError);
  CHECK(n.remainder(tensor({4, 4}, on_gpu(i64))).to_vector<int64_t>() ==
        std::vector<int64_t>{2, 3});
}

TEST_CASE("gpu: empty tensors, scalars and single elements") {
  if (!test::has_gpu()) return;
  CHECK(zeros({0, 3}, on_gpu()).sum().item<float>() == 0.0f);
  CHECK(zeros({3, 0}, on_gpu()).matmul(zeros({0, 2}, on_gpu())).to_vector<float>() ==
        std::vector<float>(6, 0.0f));
  CHECK(std::isnan(zeros({0}, on_gpu()).mean().item<float>()));
  CHECK(tensor(2.5, on_gpu()).exp().item<float>() == doctest::Approx(std::exp(2.5f)));
  CHECK(zeros({2, 0}, on_gpu()).sort(1).first.shape() == Shape{2, 0});
  CHECK(nonzero(zeros({5}, on_gpu()) != 0.0).shape() == Shape{0, 1});
}

TEST_CASE("gpu: long reductions are cut into pieces, and long masks counted in rows") {
  if (!test::has_gpu()) return;
  const Tensor x = ones({100000}, on_gpu());
  CHECK(x.sum().item<float>() == 100000.0f);
  CHECK(x.reshape({250, 400}).sum(0).sum().item<float>() == 100000.0f);
  const Tensor columns = arange(300 * 400, on_gpu()).reshape({300, 400});
  CHECK(columns.amax(0).to("cpu").equal(columns.to("cpu").amax(0)));
  const Tensor numbers = arange(40000, on_gpu(i64));
  const Tensor found = nonzero(numbers.remainder(3) == 0);
  CHECK(found.shape() == Shape{13334, 1});
  CHECK(found.to("cpu").equal(nonzero(numbers.to("cpu").remainder(3) == 0)));
}

TEST_CASE("gpu: products larger than a tile, batched and of views") {
  if (!test::has_gpu()) return;
  manual_seed(5);
  const Tensor a = randn({3, 70, 33});
  const Tensor b = randn({33, 90});
  const Tensor want = a.matmul(b);
  const Tensor got = a.to(test::gpu_device()).matmul(b.to(test::gpu_device()));
  CHECK((got.to("cpu") - want).abs().amax().item<float>() < 1e-4f);
  const Tensor turned = b.t().contiguous().to(test::gpu_device()).t();
  CHECK(a.to(test::gpu_device()).matmul(turned).to("cpu").equal(got.to("cpu")));
}

TEST_CASE("gpu: random numbers are the cpu's") {
  if (!test::has_gpu()) return;
  const auto same = [](const std::function<Tensor(const TensorOptions&)>& draw, DType dtype) {
    manual_seed(11);
    const Tensor cpu = draw({.dtype = dtype});
    manual_seed(11);
    return draw(on_gpu(dtype)).to("cpu").equal(cpu);
  };
  std::vector<DType> floats = {f32, f16, bf16};
  if (test::gpu().properties(0).has_float64) floats.push_back(f64);
  for (const DType dtype : floats) {
    INFO(dtype);
    CHECK(same([](const TensorOptions& o) { return rand({1003}, o); }, dtype));
    CHECK(same([](const TensorOptions& o) { return randn({1003}, o); }, dtype));
  }
  for (const DType dtype : {i64, i32, i16, i8, u8}) {
    INFO(dtype);
    CHECK(same([](const TensorOptions& o) { return randint(3, 100, {1003}, o); }, dtype));
  }
}

TEST_CASE("gpu: memory is counted, kept, given back and limited") {
  if (!test::has_gpu()) return;
  test::gpu().synchronize(0);
  const size_t before = test::gpu().memory_stats(0).bytes_in_use;
  {
    const Tensor x = zeros({1 << 20}, on_gpu());
    CHECK(test::gpu().memory_stats(0).bytes_in_use >= before + (4u << 20));
  }
  CHECK(test::gpu().memory_stats(0).bytes_in_use == before);
  CHECK(test::gpu().memory_stats(0).bytes_cached >= (4u << 20));
  test::gpu().empty_cache(0);
  CHECK(test::gpu().memory_stats(0).bytes_cached == 0);
  test::gpu().reset_memory_stats(0);
  test::gpu().set_memory_limit(before + (8u << 20), 0);
  const Tensor kept = zeros({1 << 19}, on_gpu());
  const std::string message = message_of([] { zeros({1 << 23}, on_gpu()); });
  CHECK(contains(message, "out of memory"));
  CHECK(contains(message, "33554432 bytes"));
  test::gpu().set_memory_limit(std::numeric_limits<size_t>::max(), 0);
  CHECK(kept.sum().item<float>() == 0.0f);
  CHECK_THROWS_AS(zeros({int64_t{1} << 40}, on_gpu()), ValueError);
}

TEST_CASE("gpu: what has a kernel reads nothing back") {
  if (!test::has_gpu()) return;
  const Tensor x = rand({6, 50}, on_gpu()) + 0.5;
  const Tensor index = randint(0, 50, {6, 8}, on_gpu(i64));
  test::gpu().synchronize(0);
  const uint64_t reads = test::gpu().counters(0).reads;
  const auto run = [&] {
    (x.exp() * x.log() + x.tanh()).softmax(1);
    x.sort(1);
    logcumsumexp(x.cumsum(1), 1);
    x.gather(1, index).sum();
    x.scatter_add(1, index, x.slice(1, 0, 8));
    x.matmul(x.t());
    functional::layer_norm(x, {50});
    x.gelu();
    functional::dropout(x, 0.5);
    x.topk(3, 1);
    nonzero(x > 1.0);
    x.argmax(1);
  };
  run();
  test::gpu().synchronize(0);
  CHECK(test::gpu().counters(0).reads == reads);
}

TEST_CASE("gpu: writes through variable_data do not count") {
  if (!test::has_gpu()) return;
  const Tensor x = ones({3}, {.dtype = f32, .device = test::gpu_device(), .requires_grad = true});
  const Tensor y = x * 2.0;
  const Tensor z = y * y;
  Tensor data = y.variable_data();
  data.select(0, 1).fill_(10.0);
  CHECK(y.to_vector<float>() == std::vector<float>{2, 10, 2});
  CHECK(z.sum().backward().get(x)->to_vector<float>() == std::vector<float>{8, 40, 8});
  Tensor row = arange(6, on_gpu());
  row.slice(0, 1, 6).copy_(row.variable_data().slice(0, 0, 5));
  CHECK(row.to_vector<float>() == std::vector<float>{0, 0, 1, 2, 3, 4});
}
