#include "kiln/train/trainer.h"

#include <cmath>
#include <filesystem>

#include <doctest/doctest.h>

#include "kiln/io/model_file.h"
#include "kiln/nn/nn.h"
#include "kiln/optim/optim.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::train;

namespace {

struct Net : nn::Module {
  nn::Linear hidden{2, 16};
  nn::Dropout dropout{0.1};
  nn::Linear out{16, 2};
  KILN_MODULE(Net, hidden, dropout, out)

  Tensor forward(const Tensor& x) const { return out(dropout(relu(hidden(x)))); }
};

// Points in the plane, and whether they lie above the diagonal.
data::TensorDataset points(int64_t n, uint64_t seed) {
  Generator generator(seed);
  const Tensor x = rand({n, 2}, {}, &generator);
  return {x, x.select(1, 1).gt(x.select(1, 0)).to(i64)};
}

// A whole training run, to be stopped after `batches` batches and to be saved to a file.
struct Run {
  explicit Run(TrainerOptions options = {}, uint64_t seed = 1)
      : optimizer(seeded(seed).parameters(), {.lr = 0.02}),
        trainer(
            net, [this](const Tensor& x) { return net(x); }, optimizer, std::move(options)) {}
  Net& seeded(uint64_t seed) {
    manual_seed(seed);
    return net;
  }

  Net net;
  optim::Adam optimizer;
  data::DataLoader training{points(300, 1), {.batch_size = 16, .shuffle = true, .seed = 5}};
  data::DataLoader validation{points(200, 2), {.batch_size = 64}};
  Trainer trainer;

  bool fit() { return trainer.fit(training, validation); }
  std::vector<float> weights() const {
    std::vector<float> all;
    for (const auto& [name, value] : net.state_dict()) {
      const auto part = value.to_vector<float>();
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
};

}  // namespace

TEST_CASE("evaluate: loss, confusion, mode, and no recording") {
  Net net;
  data::DataLoader loader(points(50, 3), {.batch_size = 16});
  int batches = 0;
  EvaluateOptions options;
  options.on_batch = [&](const data::Batch& batch, const Tensor& logits) {
    ++batches;
    CHECK_FALSE(logits.requires_grad());
    CHECK(batch.target().size(0) == logits.size(0));
    CHECK_FALSE(net.dropout.is_training());
  };
  const auto forward = [&](const Tensor& x) { return net(x); };
  const Evaluation result = evaluate(net, forward, loader, 2, options);
  CHECK(batches == 4);
  CHECK(result.complete);
  CHECK(result.confusion.total() == 50);
  CHECK(net.is_training());

  net.eval();
  const auto [x, y] = loader.dataset().get_batch(std::vector<int64_t>{0, 1, 2, 3, 4});
  CHECK(std::isfinite(result.loss));
  data::DataLoader five(data::TensorDataset(x, y), {.batch_size = 2});
  const double expected = functional::cross_entropy(net(x), y).item();
  CHECK(std::abs(evaluate(net, forward, five, 2).loss - expected) < 1e-6);
  CHECK_FALSE(net.is_training());

  int left = 2;
  options.on_batch = {};
  options.should_stop = [&left] { return left-- == 0; };
  const Evaluation part = evaluate(net, forward, loader, 2, options);
  CHECK_FALSE(part.complete);
  CHECK(part.confusion.total() == 32);
}

TEST_CASE("fit learns and keeps a record") {
  std::vector<EpochRecord> seen;
  std::vector<int64_t> saved;
  TrainerOptions options;
  options.epochs = 8;
  options.on_epoch = [&](const EpochRecord& r) { seen.push_back(r); };
  options.save = [&](const TrainingState& s) { saved.push_back(s.epoch); };
  Run run(options);
  CHECK(run.fit());
  const TrainingState& state = run.trainer.state();
  CHECK(state.epoch == 8);
  CHECK(state.batch == 0);
  CHECK(state.step_loss.size() == 8 * 19);
  REQUIRE(state.history.size() == 8);
  CHECK(seen.size() == 8);
  CHECK(saved == std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(state.history[7].epoch == 8);
  CHECK(state.history[7].valid_accuracy > 0.95);
  CHECK(state.history[7].train_loss < state.history[0].train_loss);
  CHECK(state.history[0].seconds > 0);
  // Nothing is left to do.
  CHECK(run.fit());
  CHECK(state.step_loss.size() == 8 * 19);
}

TEST_CASE("the schedule counts steps") {
  std::vector<double> rates;
  TrainerOptions options;
  options.epochs = 2;
  Run run;
  optim::LinearLR schedule(run.optimizer, 0.5, 1.0, 38);
  options.scheduler = &schedule;
  Trainer trainer(
      run.net,
      [&](const Tensor& x) {
        if (run.net.is_training()) rates.push_back(run.optimizer.param_groups()[0].lr);
        return run.net(x);
      },
      run.optimizer, options);
  CHECK(trainer.fit(run.training, run.validation));
  REQUIRE(rates.size() == 38);
  CHECK(rates[0] == doctest::Approx(0.01));
  CHECK(rates[19] == doctest::Approx(0.015));
  CHECK(rates[37] == doctest::Approx(0.02 * (0.5 + 0.5 * 37 / 38)));
}

// Wherever it is stopped, a run that is saved, loaded elsewhere and continued ends with the same
// bits.
TEST_CASE("stopped, saved and continued equals uninterrupted") {
  TrainerOptions options;
  options.epochs = 3;
  Run whole(options);
  CHECK(whole.fit());
  const test::TempDir dir;
  // In the middle of an epoch, at its last batch (before validation), and in validation.
  for (const int stop_at : {1, 7, 19, 20, 30}) {
    const std::string path = dir.path("checkpoint.safetensors");
    int asked = 0;
    TrainerOptions stopping = options;
    stopping.should_stop = [&] { return ++asked >= stop_at; };
    {
      Run* self = nullptr;
      stopping.save = [&](const TrainingState& state) {
        io::save_checkpoint(path, self->net, self->optimizer, {{"state", to_json(state)}});
      };
      Run first(stopping);
      self = &first;
      CHECK_FALSE(first.fit());
    }
    Run second(options, 99);
    const auto metadata = io::load_checkpoint(path, second.net, second.optimizer);
    second.trainer.set_state(training_state_from_json(metadata.at("state")));
    CHECK(second.fit());
    CHECK(second.weights() == whole.weights());
    const TrainingState& a = second.trainer.state();
    const TrainingState& b = whole.trainer.state();
    CHECK(a.step_loss == b.step_loss);
    REQUIRE(a.history.size() == b.history.size());
    for (size_t i = 0; i < a.history.size(); ++i) {
      CHECK(a.history[i].train_loss == b.history[i].train_loss);
      CHECK(a.history[i].train_accuracy == b.history[i].train_accuracy);
      CHECK(a.history[i].valid_loss == b.history[i].valid_loss);
      CHECK(a.history[i].valid_accuracy == b.history[i].valid_accuracy);
    }
  }
}

TEST_CASE("a loss that is no number ends training with a word of advice") {
  TrainerOptions options;
  Run run(options);
  Trainer trainer(
      run.net, [&](const Tensor& x) { return run.net(x) * std::nan(""); }, run.optimizer, options);
  const auto message =
      test::message_of<ValueError>([&] { trainer.fit(run.training, run.validation); });
  CHECK(message.find("in epoch 1, batch 1; try a smaller learning rate") != std::string::npos);
}

TEST_CASE("a state as JSON, exactly") {
  TrainingState state;
  state.epoch = 3;
  state.batch = 17;
  state.loss = RunningMean(0.1 + 0.2, 1.0 / 3.0);
  state.accuracy = RunningMean(12, 64);
  state.seconds = 1.25;
  state.history.resize(1);
  state.history[0].epoch = 1;
  state.history[0].train_loss = 1e-300;
  state.step_loss = {0.1, std::nan(""), 3e38};
  const TrainingState back = training_state_from_json(to_json(state));
  CHECK(back.epoch == 3);
  CHECK(back.batch == 17);
  CHECK(back.loss.sum() == 0.1 + 0.2);
  CHECK(back.loss.weight() == 1.0 / 3.0);
  CHECK(back.seconds == 1.25);
  REQUIRE(back.history.size() == 1);
  CHECK(back.history[0].train_loss == 1e-300);
  CHECK(std::isnan(back.history[0].valid_loss));
  REQUIRE(back.step_loss.size() == 3);
  CHECK(back.step_loss[0] == 0.1);
  CHECK(std::isnan(back.step_loss[1]));
}

TEST_CASE("JSON that is no state") {
  for (const char* text :
       {"", "{", "[]", "{}", "null", "3", R"({"epoch":-1})", R"({"epoch":"x"})"}) {
    CHECK_THROWS_AS(training_state_from_json(text), ValueError);
  }
  std::string good = to_json(TrainingState());
  CHECK(training_state_from_json(good).epoch == 0);
  good.replace(good.find("\"epoch\":0"), 9, "\"epoch\":-5");
  CHECK_THROWS_AS(training_state_from_json(good), ValueError);
}
