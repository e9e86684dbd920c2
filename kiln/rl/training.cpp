#include "kiln/rl/training.h"

#include "kiln/core/error.h"
#include "kiln/optim/clip.h"
#include "kiln/optim/optimizer.h"
#include "kiln/tensor/autograd/grad_mode.h"

namespace kiln::rl {

Update update_with(optim::Optimizer& optimizer, double max_grad_norm) {
  std::vector<Tensor> params;
  for (const optim::ParamGroup& group : optimizer.param_groups()) {
    params.insert(params.end(), group.params.begin(), group.params.end());
  }
  return [&optimizer, params, max_grad_norm](const Tensor& loss) {
    Gradients gradients = loss.backward();
    optim::clip_grad_norm_(gradients, params, max_grad_norm);
    optimizer.step(gradients);
  };
}

double evaluate(const Act& act, VectorEnvironment environment) {
  NoGradGuard no_grad;
  const auto count = static_cast<size_t>(environment.size());
  std::vector<bool> done(count, false);
  double total = 0;
  size_t left = count;
  environment.reset();
  while (left > 0) {
    const VectorStep step = environment.step(act(environment.observation()));
    const auto terminated = step.terminated.to_vector<double>();
    const auto truncated = step.truncated.to_vector<double>();
    size_t ended = 0;
    for (size_t i = 0; i < count; ++i) {
      if (terminated[i] == 0 && truncated[i] == 0) continue;
      const Episode& episode = step.episodes[ended++];
      if (done[i]) continue;
      done[i] = true;
      --left;
      total += episode.total_reward;
    }
  }
  return total / static_cast<double>(count);
}

namespace detail {

Reporter::Reporter(const char* op, const ReportOptions& options,
                   const VectorEnvironment& environment, uint64_t seed)
    : options_(options), environment_(environment), seed_(seed), next_(options.every) {
  if (options.every < 1 || options.episodes < 0) {
    throw_error<ValueError>(op,
                            ": reports need a positive interval and no negative number of "
                            "episodes; got ",
                            options.every, " and ", options.episodes);
  }
}

void Reporter::ended(const std::vector<Episode>& episodes) {
  constexpr size_t kRecent = 100;
  progress.episodes += static_cast<int64_t>(episodes.size());
  for (const Episode& episode : episodes) {
    recent_.push_back(episode);
    if (recent_.size() > kRecent) recent_.pop_front();
  }
}

bool Reporter::report(const Act& act, bool last) {
  if (progress.steps < next_ && !last) return true;
  while (next_ <= progress.steps) next_ += options_.every;
  if (!recent_.empty()) {
    double sum = 0, length = 0;
    for (const Episode& episode : recent_) {
      sum += episode.total_reward;
      length += static_cast<double>(episode.length);
    }
    progress.mean_return = sum / static_cast<double>(recent_.size());
    progress.mean_length = length / static_cast<double>(recent_.size());
  }
  if (options_.episodes > 0) {
    progress.evaluation = evaluate(act, environment_.fresh(options_.episodes, seed_));
    progress.solved = progress.evaluation >= options_.stop_return;
  }
  const bool go_on = !options_.on_progress || options_.on_progress(progress);
  return go_on && !progress.solved && !last;
}

}  // namespace detail
}  // namespace kiln::rl
