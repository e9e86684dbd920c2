// Recurrences, as functions of all that they read.
#pragma once

#include "gradcheck.h"

namespace gradcheck {

template <class B>
std::vector<Case<B>> recurrence_cases() {
  using A = kiln::Autodiff<B>;
  using T = typename A::FloatTensorPrimitive;
  using V = std::vector<T>;
  using kiln::RecurrenceCell;
  std::vector<Case<B>> out;
  constexpr int64_t kSequences = 3, kSize = 2;
  for (const RecurrenceCell cell :
       {RecurrenceCell::tanh, RecurrenceCell::relu, RecurrenceCell::gru, RecurrenceCell::lstm}) {
    for (const bool reverse : {false, true}) {
      kiln::RecurrenceOptions options;
      options.cell = cell;
      options.reverse = reverse;
      options.batch_sizes = reverse ? std::vector<int64_t>{3, 2} : std::vector<int64_t>{3, 3, 1};
      const int64_t gates = options.gates() * kSize;
      std::vector<TensorData> operands = {
          uniform({options.rows(), gates}, -1, 1, 61), uniform({kSequences, kSize}, -1, 1, 62),
          uniform({gates, kSize}, -1, 1, 63), uniform({gates}, -1, 1, 64)};
      const bool lstm = cell == RecurrenceCell::lstm;
      if (lstm) operands.push_back(uniform({kSequences, kSize}, -1, 1, 65));
      out.push_back({"float_recurrence", operands, [options, lstm](const V& x) {
                       const auto [y, last, kept] = A::float_recurrence(
                           x[0], x[1], lstm ? &x[4] : nullptr, x[2], &x[3], options);
                       const int64_t states = options.states() * kSequences;
                       const V all = {y, A::float_reshape(last, kiln::Shape{states, kSize})};
                       return A::float_cat(std::span<const T>(all), 0);
                     }});
    }
  }
  for (const RecurrenceCell cell :
       {RecurrenceCell::tanh, RecurrenceCell::relu, RecurrenceCell::gru, RecurrenceCell::lstm}) {
    constexpr int64_t kInputs = 4;
    const kiln::RecurrenceOptions options{.cell = cell};
    const int64_t gates = options.gates() * kSize;
    std::vector<TensorData> operands = {uniform({kSequences, kInputs}, -1, 1, 66),
                                        uniform({kSequences, kSize}, -1, 1, 67),
                                        uniform({gates, kInputs}, -1, 1, 68),
                                        uniform({gates, kSize}, -1, 1, 69),
                                        uniform({gates}, -1, 1, 70),
                                        uniform({gates}, -1, 1, 71)};
    const bool lstm = cell == RecurrenceCell::lstm;
    if (lstm) operands.push_back(uniform({kSequences, kSize}, -1, 1, 72));
    out.push_back({"float_recurrent_cell", operands, [options, lstm](const V& x) {
                     const auto [h, c] = A::float_recurrent_cell(x[0], x[1], lstm ? &x[6] : nullptr,
                                                                 x[2], x[3], &x[4], &x[5], options);
                     if (!lstm) return h;
                     const V all = {h, c};
                     return A::float_cat(std::span<const T>(all), 0);
                   }});
  }
  return out;
}

}  // namespace gradcheck
