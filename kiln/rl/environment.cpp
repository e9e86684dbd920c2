#include "kiln/rl/environment.h"

#include <cmath>

#include "kiln/core/error.h"

namespace kiln::rl {

int64_t Space::numel() const { return is_discrete() ? 1 : shape.numel(); }

Space Space::discrete(int64_t n) {
  if (n < 1) throw_error<ValueError>("Space: there must be at least 1 choice; got ", n);
  Space out;
  out.n = n;
  return out;
}

Space Space::box(const Shape& shape, double low, double high) {
  const auto count = static_cast<size_t>(shape.numel());
  return box(shape, std::vector<double>(count, low), std::vector<double>(count, high));
}

Space Space::box(const Shape& shape, std::vector<double> low, std::vector<double> high) {
  const auto count = static_cast<size_t>(shape.numel());
  if (low.size() != count || high.size() != count) {
    throw_error<ValueError>("Space: a box of shape ", shape, " needs ", count,
                            " limits on each side; got ", low.size(), " and ", high.size());
  }
  for (size_t i = 0; i < count; ++i) {
    if (!(low[i] <= high[i])) {
      throw_error<ValueError>("Space: low must not be above high; got ", low[i], " and ", high[i]);
    }
  }
  Space out;
  out.shape = shape;
  out.low = std::move(low);
  out.high = std::move(high);
  return out;
}

Environment::Environment(int64_t time_limit) : time_limit_(time_limit) {
  if (time_limit < 0) {
    throw_error<ValueError>("Environment: time_limit must not be negative; got ", time_limit);
  }
}

void Environment::begin_episode() {
  elapsed_ = 0;
  running_ = true;
}

void Environment::reset(std::span<float> observation, std::optional<uint64_t> seed) {
  if (seed) random_ = Random(*seed);
  reset_state(observation);
  begin_episode();
}

Outcome Environment::step(std::span<const double> action, std::span<float> observation) {
  if (!running_) {
    throw_error<RuntimeError>("step: no episode is under way; call reset() first");
  }
  const Space space = action_space();
  if (static_cast<int64_t>(action.size()) != space.numel()) {
    throw_error<ValueError>("step: an action has ", space.numel(), " numbers; got ", action.size());
  }
  for (const double a : action) {
    if (space.is_discrete() ? !(a >= 0 && a < static_cast<double>(space.n) && a == std::floor(a))
                            : !std::isfinite(a)) {
      throw_error<ValueError>("step: no legal action; got ", a, "; expected ",
                              space.is_discrete() ? concat("one of 0 .. ", space.n - 1)
                                                  : std::string("finite numbers"));
    }
  }
  Outcome out = step_state(action, observation);
  ++elapsed_;
  if (time_limit_ > 0 && elapsed_ >= time_limit_ && !out.terminated) out.truncated = true;
  running_ = !out.terminated && !out.truncated;
  return out;
}

}  // namespace kiln::rl
