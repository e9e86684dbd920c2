#include "kiln/train/learner.h"

#include <cmath>
#include <filesystem>

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/metrics/classification.h"
#include "kiln/nn/nn.h"
#include "kiln/optim/optim.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::train;
using test::TempDir;

namespace {

struct Net : nn::Module {
  nn::Linear hidden{2, 16};
  nn::BatchNorm1d norm{16};
  nn::Dropout dropout{0.1};
  nn::Linear out{16, 2};
  KILN_MODULE(Net, hidden, norm, dropout, out)

  Tensor forward(const Tensor& x) const { return out(dropout(relu(norm(hidden(x))))); }
};

data::TensorDataset points(int64_t n, uint64_t seed) {
  Generator generator(seed);
  const Tensor x = rand({n, 2}, {}, &generator);
  return {x, x.select(1, 1).gt(x.select(1, 0)).to(i64)};
}

struct Run {
  explicit Run(LearnerOptions options = {}, uint64_t seed = 1)
      : optimizer(seeded(seed).parameters(), {.lr = 0.02}),
        schedule(optimizer, 0.5, 1.0, 30),
        accuracy({.task = "multiclass", .num_classes = 2}) {
    options.schedules = {{&schedule, true}};
    options.metrics = {
        {"accuracy", &accuracy, [this](const Tensor& outputs, const Tensor& targets) {
           accuracy.update(outputs, targets);
         }}};
    learner.emplace(
        net, std::vector<optim::Optimizer*>{&optimizer},
        [this](const data::Batch& batch) {
          StepResult result;
          result.outputs = net(batch.input());
          result.targets = batch.target();
          result.loss = functional::cross_entropy(result.outputs, result.targets);
          return result;
        },
        std::move(options));
  }
  Net& seeded(uint64_t seed) {
    manual_seed(seed);
    return net;
  }
  bool fit() { return learner->fit(training, {{"valid", &validation}}); }
  std::vector<float> weights() const {
    std::vector<float> all;
    for (const auto& [name, value] : net.state_dict()) {
      const auto part = value.to(f32).to_vector<float>();
      all.insert(all.end(), part.begin(), part.end());
    }
    for (const Tensor& average : learner->averages()) {
      const auto part = average.to_vector<float>();
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  Net net;
  optim::Adam optimizer;
  optim::LinearLR schedule;
  metrics::Accuracy accuracy;
  data::DataLoader training{points(150, 1),
                            {.batch_size = 16, .shuffle = true, .seed = 5, .num_workers = 2}};
  data::DataLoader validation{points(100, 2), {.batch_size = 64}};
  std::optional<Learner> learner;
};

LearnerOptions busy(const std::string& folder = "") {
  LearnerOptions options;
  options.epochs = 2;
  options.accumulate = 2;
  options.clip_norm = 1.0;
  options.precision = f16;
  options.ema = 0.9;
  options.folder = folder;
  options.every_steps = folder.empty() ? 0 : 1;
  options.keep.keep_last = 100;
  options.log_every = 1;
  return options;
}

double value_of(const NamedNumbers& values, const std::string& name) {
  for (const auto& [known, value] : values) {
    if (known == name) return value;
  }
  return std::nan("");
}

}  // namespace

TEST_CASE("Learner: the loop by hand") {
  Run run({.epochs = 2});
  CHECK(run.fit());
  CHECK(run.learner->step() == 20);
  CHECK(run.learner->epoch() == 2);

  Run hand;
  std::vector<double> losses;
  hand.net.train();
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    hand.training.set_epoch(epoch);
    for (const data::Batch& batch : hand.training) {
      const Tensor loss = functional::cross_entropy(hand.net(batch.input()), batch.target());
      losses.push_back(loss.item());
      loss.backward_accumulate();
      hand.optimizer.step();
      hand.optimizer.zero_grad();
      hand.schedule.step();
    }
  }
  CHECK(run.learner->step_loss() == losses);
  CHECK(run.weights() == hand.weights());
  hand.net.eval();
  const auto [x, y] =
      hand.validation.dataset().get_batch(std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6});
  data::DataLoader seven(data::TensorDataset(x, y), {.batch_size = 3});
  const NamedNumbers found = run.learner->evaluate(seven);
  CHECK(value_of(found, "test/loss") ==
        doctest::Approx(functional::cross_entropy(hand.net(x), y).item()));
  CHECK(value_of(found, "test/accuracy") == hand.net(x).argmax(1).eq(y).to(f64).mean().item());
}

TEST_CASE("Learner: from every checkpoint to the same bits") {
  const TempDir dir;
  LearnerOptions each = busy(dir.path("whole"));
  Run* self = nullptr;
  each.on_step = [&] { self->learner->store()->wait(); };  // so that none comes late
  Run whole(each);
  self = &whole;
  CHECK(whole.fit());
  CHECK(whole.learner->step() == 10);
  const std::vector<CheckpointInfo> all = whole.learner->store()->list();
  REQUIRE(all.size() == 10);
  for (const CheckpointInfo& info : all) {
    const std::string folder = dir.path("run" + std::to_string(info.step));
    std::filesystem::create_directories(folder + "/checkpoints");
    std::filesystem::copy(info.path, folder + "/checkpoints");
    LearnerOptions options = busy(folder);
    options.resume = true;
    options.every_steps = 3;
    Run again(options, 99);
    CHECK(again.fit());
    CHECK(again.weights() == whole.weights());
    CHECK(again.learner->step_loss() == whole.learner->step_loss());
    CHECK(again.learner->history() == whole.learner->history());
    CHECK(again.optimizer.param_groups()[0].lr == whole.optimizer.param_groups()[0].lr);
  }
}

TEST_CASE("Learner: stopped anywhere and gone on with") {
  const TempDir dir;
  Run whole(busy(dir.path("whole")));
  CHECK(whole.fit());
  for (const int stop_at : {1, 3, 5, 6, 7, 9}) {
    LearnerOptions options = busy(dir.path("run" + std::to_string(stop_at)));
    options.every_steps = 0;
    options.resume = true;
    int asked = 0;
    options.should_stop = [&] { return ++asked == stop_at; };
    {
      Run first(options);
      CHECK_FALSE(first.fit());
    }
    options.should_stop = {};
    Run second(options, 7);
    CHECK(second.fit());
    CHECK(second.weights() == whole.weights());
    CHECK(second.learner->history() == whole.learner->history());
  }
}

TEST_CASE("Learner: steps, early stopping, averages") {
  Run steps({.steps = 13});
  CHECK(steps.fit());
  CHECK(steps.learner->step() == 13);
  CHECK(steps.learner->history().size() == 2);

  LearnerOptions options{.epochs = 50};
  options.early_stop = EarlyStop{.metric = "valid/constant", .patience = 2};
  options.valid_step = [](const data::Batch&) {
    return StepResult{.loss = {}, .numbers = {{"constant", 1.0}}};
  };
  Run early(options);
  CHECK(early.fit());
  CHECK(early.learner->history().size() == 4);

  LearnerOptions averaged{.epochs = 1};
  averaged.ema = 1.0;  // the first weights for ever
  std::vector<float> first;
  Run* self = nullptr;
  averaged.on_step = [&] {
    if (first.empty()) first = self->net.out.weight->to_vector<float>();
  };
  Run run(averaged);
  self = &run;
  CHECK(run.fit());
  CHECK(run.learner->averages()[4].to_vector<float>() == first);
  CHECK(run.net.out.weight->to_vector<float>() != first);
}

TEST_CASE("Learner: what is wrong is said") {
  CHECK_THROWS_AS(Run({.accumulate = 0}), ValueError);
  CHECK_THROWS_AS(Run({.clip_norm = -1.0}), ValueError);
  CHECK_THROWS_AS(Run({.precision = f64}), ValueError);
  CHECK_THROWS_AS(Run({.resume = true}), ValueError);
  const TempDir dir;
  Run first({.epochs = 1, .folder = dir.path()});
  CHECK(first.fit());
  Run second({.epochs = 2, .folder = dir.path()});
  const auto message = test::message_of<ValueError>([&] { second.fit(); });
  CHECK(message.find("holds a run of 10 steps") != std::string::npos);
  Run other({.epochs = 2, .precision = f16, .folder = dir.path(), .resume = true});
  CHECK_THROWS_AS(other.fit(), ValueError);

  Run bad;
  Learner learner(bad.net, {&bad.optimizer},
                  [&](const data::Batch& batch) {
                    return StepResult{bad.net(batch.input()).sum() * std::nan("")};
                  },
                  {});
  CHECK(test::message_of<ValueError>([&] {
          learner.fit(bad.training);
        }).find("in epoch 1, batch 1") != std::string::npos);
}
