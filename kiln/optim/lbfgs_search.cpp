#include "kiln/optim/lbfgs_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kiln::optim::detail {

namespace {

constexpr double kDecrease = 1e-4;  // c1 of the Wolfe conditions
constexpr double kCurvature = 0.9;  // c2

// The minimum within [low, high] of the cubic with the values and slopes of a and b.
double cubic_minimum(const Probe& a, const Probe& b, double low, double high) {
  const Probe& left = a.t <= b.t ? a : b;
  const Probe& right = a.t <= b.t ? b : a;
  const double width = right.t - left.t;
  const double first =
      left.slope + right.slope - 3.0 * (left.loss - right.loss) / (left.t - right.t);
  const double square = first * first - left.slope * right.slope;
  if (!(square >= 0.0)) return (low + high) / 2.0;
  const double second = std::sqrt(square);
  const double t = right.t - width * ((right.slope + second - first) /
                                      (right.slope - left.slope + 2.0 * second));
  return std::min(std::max(t, low), high);
}

bool falls_enough(const Probe& start, const Probe& now) {
  return now.loss <= start.loss + kDecrease * now.t * start.slope;
}
bool is_flat_enough(const Probe& start, const Probe& now) {
  return std::abs(now.slope) <= -kCurvature * start.slope;
}

// An interval that holds a point wanted; `low` is the end with the smaller loss.
struct Bracket {
  Probe low;
  Probe high;
  bool found;  // low is such a point
};

Bracket ordered(Probe a, Probe b) {
  if (a.loss <= b.loss) return {std::move(a), std::move(b), false};
  return {std::move(b), std::move(a), false};
}

// Walks outward until the interval is known.
Bracket outward(const std::function<Probe(double)>& evaluate, const Probe& start, double t,
                int64_t most, int64_t* rounds, int64_t* count) {
  Probe before = start;
  Probe now = evaluate(t);
  *count = 1;
  for (*rounds = 0; *rounds < most; ++*rounds) {
    if (!falls_enough(start, now) || (*rounds > 1 && now.loss >= before.loss)) {
      return ordered(std::move(before), std::move(now));
    }
    if (is_flat_enough(start, now)) return {now, now, true};
    if (now.slope >= 0.0) return ordered(std::move(before), std::move(now));
    const double next = cubic_minimum(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10.0);
    before = std::move(now);
    now = evaluate(next);
    ++*count;
  }
  return ordered(start, std::move(now));
}

}  // namespace

Probe strong_wolfe(const std::function<Probe(double)>& evaluate, const Probe& start, double t,
                   double longest, double tolerance_change, int64_t most, int64_t* count) {
  int64_t rounds = 0;
  Bracket bracket = outward(evaluate, start, t, most, &rounds, count);
  bool stuck = false;  // the last guess fell near an end, and so did this one
  while (!bracket.found && rounds < most) {
    const double least = std::min(bracket.low.t, bracket.high.t);
    const double largest = std::max(bracket.low.t, bracket.high.t);
    if ((largest - least) * longest < tolerance_change) break;
    double guess = cubic_minimum(bracket.low, bracket.high, least, largest);
    const double margin = 0.1 * (largest - least);
    if (std::min(largest - guess, guess - least) < margin) {
      if (stuck || guess >= largest || guess <= least) {
        guess = largest - guess < guess - least ? largest - margin : least + margin;
        stuck = false;
      } else {
        stuck = true;
      }
    } else {
      stuck = false;
    }
    Probe now = evaluate(guess);
    ++*count;
    ++rounds;
    if (!falls_enough(start, now) || now.loss >= bracket.low.loss) {
      bracket = ordered(std::move(bracket.low), std::move(now));
      continue;
    }
    if (is_flat_enough(start, now)) {
      bracket.found = true;
    } else if (now.slope * (bracket.high.t - bracket.low.t) >= 0.0) {
      bracket.high = std::move(bracket.low);
    }
    bracket.low = std::move(now);
  }
  return bracket.low;
}

}  // namespace kiln::optim::detail
