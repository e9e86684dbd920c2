// Several processes fit a line through noisy points, each with its own part of every batch.
//
//   build/release/examples/distributed_regression    # one process
//   kiln launch -n 2 build/release/examples/distributed_regression
#include <cstdio>
#include <memory>

#include <kiln/distributed/distributed.h>
#include <kiln/kiln.h>

using namespace kiln;

int main() {
  // The group that a launcher made, or this process alone.
  const auto group = distributed::init_process_group({.allow_alone = true});
  const int rank = group->rank();
  const int size = group->size();

  manual_seed(0);  // every process draws the same points, and takes its part of them
  constexpr int64_t count = 960;
  const Tensor x = linspace(-1, 1, count).unsqueeze(1);
  const Tensor y = x * 3.0 - 0.5 + randn({count, 1}) * 0.1;
  data::TensorDataset points({x, y});
  const auto sampler = std::make_shared<data::DistributedSampler>(count, size, rank);
  data::DataLoader loader(points, {.batch_size = 96 / size, .sampler = sampler});

  nn::Linear model(1, 1);
  distributed::DistributedDataParallel replicas(model, group);
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  for (int epoch = 1; epoch <= 20; ++epoch) {
    Tensor total = zeros({});
    for (const auto& [a, b] : loader) {
      optimizer.zero_grad();
      const Tensor loss = functional::mse_loss(model(a), b);
      loss.backward_accumulate();
      optimizer.step();
      total.add_(loss.detach());
    }
    group->all_reduce(total, distributed::ReduceOp::avg);
    if (rank == 0 && epoch % 5 == 0) {
      std::printf("epoch %d: loss %.4f\n", epoch, total.item() / double(loader.size()));
    }
  }
  if (rank == 0) {
    std::printf("%d ranks: y = %.2f x %+.2f\n", size, model.weight->item(), model.bias->item());
  }
}
