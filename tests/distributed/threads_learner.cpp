// Learners of several processes beside one Learner: weights, measures, files, going on.
#include <filesystem>
#include <mutex>

#include <doctest/doctest.h>

#include "kiln/distributed/error.h"
#include "kiln/kiln.h"
#include "kiln/metrics/metrics.h"
#include "kiln/train/learner.h"
#include "tests/distributed/ranks.h"
#include "tests/support/temp_dir.h"

using namespace kiln;
using namespace kiln::distributed;
using functional::cross_entropy;
using test::in_group;
using test::TempDir;

namespace {

// Samples of three classes that a line tells apart.
struct Data {
  Tensor x = (arange(240.0) * 1.7).sin().view({60, 4});
  Tensor y = x.narrow(1, 0, 3).argmax(1);
};

// What a run of a team leaves at one rank.
struct Outcome {
  Tensor weight;
  std::vector<train::NamedNumbers> history;
  std::vector<double> step_loss;
  int64_t steps = 0;
  bool whole = false;
};

struct Setting {
  int size = 1;
  int64_t epochs = 3;
  std::string folder = {};
  bool resume = false;
  int64_t stop_after = 0;  // steps, by rank 1's wish
};

// The random numbers of a process are its own; those of threads here come in turns.
std::mutex mutex;

Outcome run(ProcessGroup& group, const Setting& setting) {
  const Data data;
  nn::Linear net(4, 3);
  {
    const std::lock_guard lock(mutex);
    manual_seed(7);
    net.materialize();
  }
  const std::shared_ptr<ProcessGroup> shared(&group, [](ProcessGroup*) {});
  const DistributedDataParallel replicas(net, shared);
  optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  data::TensorDataset dataset({data.x, data.y});
  const auto loader = [&](bool shuffle) {
    return data::DataLoader(dataset,
                            {.batch_size = 12 / setting.size,
                             .sampler = std::make_shared<data::DistributedSampler>(
                                 60, setting.size, group.rank(),
                                 data::DistributedSamplerOptions{.shuffle = shuffle, .seed = 3})});
  };
  data::DataLoader training = loader(true);
  data::DataLoader validation = loader(false);
  metrics::Accuracy accuracy({.task = "multiclass", .num_classes = 3});
  Outcome out;
  train::LearnerOptions options{.epochs = setting.epochs};
  options.team = replicas.team();
  options.folder = setting.folder;
  options.resume = setting.resume;
  options.every_steps = 2;
  options.log_every = 1;
  options.metrics = {{"accuracy", &accuracy, [&](const Tensor& outputs, const Tensor& targets) {
                        accuracy.update(outputs, targets);
                      }}};
  options.should_stop = [&] {
    return setting.stop_after > 0 && group.rank() == 1 && out.steps >= setting.stop_after;
  };
  options.on_step = [&] { ++out.steps; };
  train::Learner learner(
      net, {&sgd},
      [&](const data::Batch& batch) {
        Tensor outputs = net(batch[0]);
        return train::StepResult{cross_entropy(outputs, batch[1]), outputs, batch[1]};
      },
      std::move(options));
  out.whole = learner.fit(training, {{"valid", &validation}});
  out.weight = net.weight.val().detach().clone();
  out.history = learner.history();
  out.step_loss = learner.step_loss();
  return out;
}

// Of each rank.
std::vector<Outcome> run(const Setting& setting) {
  std::vector<Outcome> out(static_cast<size_t>(setting.size));
  in_group(setting.size, [&](ProcessGroup& group) {
    out[static_cast<size_t>(group.rank())] = run(group, setting);
  });
  return out;
}

double value_of(const train::NamedNumbers& values, const std::string& name) {
  for (const auto& [known, value] : values) {
    if (known == name) return value;
  }
  FAIL("there is no " << name);
  return 0;
}

}  // namespace

TEST_CASE("a Learner trains and measures in several processes as in one") {
  const Outcome alone = run(Setting{})[0];
  for (const int size : {2, 3}) {
    for (const Outcome& outcome : run(Setting{.size = size})) {
      CHECK(outcome.whole);
      CHECK(allclose(outcome.weight, alone.weight, 1e-5, 1e-6));
      REQUIRE(outcome.history.size() == 3);
      for (size_t epoch = 0; epoch < 3; ++epoch) {
        for (const char* name : {"train/loss", "train/accuracy", "valid/loss", "valid/accuracy"}) {
          CHECK(value_of(outcome.history[epoch], name) ==
                doctest::Approx(value_of(alone.history[epoch], name)).epsilon(1e-5));
        }
      }
      REQUIRE(outcome.step_loss.size() == alone.step_loss.size());
      CHECK(outcome.step_loss[4] == doctest::Approx(alone.step_loss[4]).epsilon(1e-5));
    }
  }
}

TEST_CASE("one process writes, a stop is everybody's, and all go on with the same bits") {
  const TempDir folder;
  const std::vector<Outcome> whole = run(Setting{.size = 2, .folder = folder.path("whole")});
  const std::vector<Outcome> part =
      run(Setting{.size = 2, .folder = folder.path("part"), .stop_after = 7});
  for (const Outcome& outcome : part) {
    CHECK_FALSE(outcome.whole);
    CHECK(outcome.steps == 7);
  }
  CHECK_THROWS(run(Setting{.size = 2, .folder = folder.path("part")}));  // it holds a run
  const std::vector<Outcome> rest =
      run(Setting{.size = 2, .folder = folder.path("part"), .resume = true});
  for (const Outcome& outcome : rest) {
    CHECK(outcome.whole);
    CHECK(outcome.steps == 8);
    CHECK(equal(outcome.weight, whole[0].weight));
    CHECK(outcome.history == whole[0].history);
    CHECK(outcome.step_loss == whole[0].step_loss);
  }
  CHECK(std::filesystem::exists(folder.path("whole/checkpoints")));
}

TEST_CASE("loaders of different lengths are refused") {
  CHECK_THROWS_WITH_AS(in_group(2,
                                [](ProcessGroup& group) {
                                  nn::Linear net(2, 1);
                                  net.materialize();
                                  const std::shared_ptr<ProcessGroup> shared(&group,
                                                                             [](ProcessGroup*) {});
                                  const DistributedDataParallel replicas(net, shared);
                                  optim::SGD sgd(net.parameters(), {.lr = 0.1});
                                  data::TensorDataset dataset({zeros({4 + group.rank(), 2})});
                                  data::DataLoader loader(dataset);
                                  train::LearnerOptions options;
                                  options.team = replicas.team();
                                  train::Learner learner(
                                      net, {&sgd},
                                      [&](const data::Batch& batch) {
                                        return train::StepResult{net(batch[0]).sum()};
                                      },
                                      options);
                                  learner.fit(loader);
                                }),
                       doctest::Contains("as many batches of 'train'"), ValueError);
}
