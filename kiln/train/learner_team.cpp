// A Learner among the processes of a team.
#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "kiln/core/error.h"
#include "kiln/core/random.h"
#include "kiln/data/sample_random.h"
#include "kiln/io/torch_file.h"
#include "kiln/train/learner.h"

namespace kiln::train {

uint64_t batch_seed(uint64_t seed, int rank, int size, int64_t epoch, int64_t batch) {
  // The stream of a sample that no dataset has: indices of samples begin at 0.
  data::SampleRandom random(seed, epoch, -1 - (batch * size + rank));
  const uint64_t high = random.bits();
  return high << 32 | random.bits();
}

// Whether this process or, of a team, any is asked to stop: then all do.
bool Learner::stopped() const {
  bool stop = options_.should_stop && options_.should_stop();
  if (options_.team) {
    double any = stop ? 1.0 : 0.0;
    options_.team->sum({&any, 1});
    stop = any > 0;
  }
  return stop;
}

double Learner::team_mean(double value) const {
  if (!options_.team) return value;
  options_.team->sum({&value, 1});
  return value / options_.team->size;
}

// What the processes counted, together.
void Learner::add_over_team(NamedNumbers& sums, double& samples) const {
  if (!options_.team) return;
  std::vector<double> numbers{samples};
  for (const auto& [name, sum] : sums) numbers.push_back(sum);
  options_.team->sum(numbers);
  samples = numbers[0];
  for (size_t i = 0; i < sums.size(); ++i) sums[i].second = numbers[i + 1];
}

// After each step all processes have the sums of all, so that a checkpoint of the first one is
// whole.
void Learner::take_own_sums() {
  add_over_team(own_sums_, own_samples_);
  samples_ += own_samples_;
  own_samples_ = 0;
  for (const auto& [name, value] : own_sums_) {
    const auto known = std::ranges::find(sums_, name, &NamedNumbers::value_type::first);
    if (known == sums_.end()) {
      sums_.emplace_back(name, value);
    } else {
      known->second += value;
    }
  }
  own_sums_.clear();
}

// All of them must take as many steps, and know the first one's seed.
void Learner::begin_team(const data::DataLoader& training, const std::vector<Split>& splits) {
  const Team& team = *options_.team;
  const auto check = [&](const std::string& name, int64_t batches) {
    const auto own = static_cast<double>(batches);
    std::array<double, 2> numbers{own, own * own};
    team.sum(numbers);
    const double mean = numbers[0] / team.size;
    if (numbers[1] != mean * mean * team.size) {
      throw_error<ValueError>("Learner: the processes of a team need as many batches of '", name,
                              "'; got ", batches, " at rank ", team.rank, " and ", mean,
                              " in the mean; expected a data::DistributedSampler in each loader");
    }
  };
  check("train", training.size());
  for (const auto& [name, loader] : splits) check(name, loader->size());
  const uint64_t seed = team.is_main() ? default_generator().state().seed : 0;
  std::array<double, 2> halves{static_cast<double>(seed >> 32),
                               static_cast<double>(seed & 0xffffffffu)};
  team.sum(halves);
  team_seed_ = static_cast<uint64_t>(halves[0]) << 32 | static_cast<uint64_t>(halves[1]);
}

// The others load the checkpoint that the first one goes on from.
void Learner::follow_main() {
  const Team& team = *options_.team;
  double step = team.is_main() && step_ > 0 ? static_cast<double>(step_) : 0.0;
  team.sum({&step, 1});
  if (!team.is_main() && step > 0 && static_cast<int64_t>(step) != step_) {
    const std::string folder = (std::filesystem::path(options_.folder) / "checkpoints").string();
    load_state(io::load_torch(CheckpointStore::path_of(folder, static_cast<int64_t>(step))));
  }
  team.sum({&step, 1});  // the first one may remove the file when all have read it
}

}  // namespace kiln::train
