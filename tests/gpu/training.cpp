// Training on the OpenCL device: the cpu's numbers, the same bits in every run, memory that stays.
#include <cmath>

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "tests/gpu/device_under_test.h"

using namespace kiln;

namespace {

struct Net : nn::Module {
  nn::Conv2d conv{1, 4, 3};
  nn::BatchNorm2d norm{4};
  nn::Linear out{4 * 5 * 5, 10};
  Tensor forward(const Tensor& x) {
    Tensor h = functional::max_pool2d(norm(conv(x)).relu(), 2);
    return out(functional::dropout(h.flatten(1), 0.1, is_training()));
  }
  KILN_MODULE(Net, conv, norm, out)
};

struct Run {
  std::vector<float> losses;
  std::vector<float> weights;
};

Run train(Device device, int steps) {
  manual_seed(7);
  Net net;
  const Tensor images = rand({8, 1, 12, 12});
  const Tensor targets = randint(0, 10, {8}, {.dtype = i64});
  net.to(device);
  const Tensor x = images.to(device);
  const Tensor y = targets.to(device);
  optim::AdamW optimizer(net.parameters(), {.lr = 1e-2});
  Run run;
  for (int i = 0; i < steps; ++i) {
    const Tensor loss = functional::cross_entropy(net.forward(x), y);
    optimizer.step(loss.backward());
    run.losses.push_back(loss.item<float>());
  }
  run.weights = net.out.weight->to("cpu").flatten().to_vector<float>();
  return run;
}

}  // namespace

TEST_CASE("gpu: a convolutional net trains as on the cpu") {
  if (!test::has_gpu()) return;
  const Run cpu = train("cpu", 4);
  const Run gpu = train(test::gpu_device(), 4);
  for (size_t i = 0; i < cpu.losses.size(); ++i) {
    CHECK(gpu.losses[i] == doctest::Approx(cpu.losses[i]).epsilon(1e-3));
  }
  CHECK(gpu.losses.back() < gpu.losses.front());
  const Run again = train(test::gpu_device(), 4);
  CHECK(gpu.losses == again.losses);
  CHECK(gpu.weights == again.weights);
}

TEST_CASE("gpu: memory stays flat over many steps") {
  if (!test::has_gpu()) return;
  manual_seed(1);
  nn::Linear layer(6, 3);
  layer.to(test::gpu_device());
  optim::SGD optimizer(layer.parameters(), {.lr = 0.1, .momentum = 0.9});
  const Tensor x = rand({4, 6}, {.dtype = f32, .device = test::gpu_device()});
  const auto step = [&] { optimizer.step(layer(x).square().mean().backward()); };
  for (int i = 0; i < 20; ++i) step();
  test::gpu().synchronize(0);
  const MemoryStats before = test::gpu().memory_stats(0);
  for (int i = 0; i < 500; ++i) step();
  test::gpu().synchronize(0);
  const MemoryStats after = test::gpu().memory_stats(0);
  CHECK(after.bytes_in_use == before.bytes_in_use);
  CHECK(after.bytes_cached == before.bytes_cached);
  CHECK(after.system_allocations == before.system_allocations);
}
