// New random numbers for a recording of ops that is replayed.
//
// A recorded op holds the RandomStream that it was called with. Called again with that, dropout
// would drop the same elements in every step. A tape moves the streams on: in each replay an op
// gets the numbers that it would get if the step were computed anew, and the generators end where
// they would end.
//
//   RandomTape tape;                    // the recording begins
//   ... ops are called and recorded
//   tape.finish();
//   for each replay:
//     tape.advance();
//     ... op(tape(recorded stream))     // kiln/backend/replay.h does it for any argument
//
// Streams that are equal stay equal: a gradient finds the mask of its forward pass, and a
// checkpoint's second pass that of the first, though both are ops of their own in the recording.
#pragma once

#include <vector>

#include "kiln/core/random.h"

namespace kiln {

class RandomTape {
 public:
  RandomTape();

  // Throws ValueError when a generator was seeded since the beginning: such a step would draw the
  // same numbers again, which no replay may decide.
  void finish();

  // Takes from each generator, in its present state, what the recorded step took. Generators that
  // were made within the step, or exist no more, are left out: their streams stay as they were.
  void advance();

  // What stands in this replay for a stream of the recording.
  RandomStream operator()(const RandomStream& recorded) const;

 private:
  struct Part {
    Generator::Known begin;
    uint64_t end = 0;  // the offset after the step
    RandomStream now;  // where the present replay begins
  };
  std::vector<Part> parts_;
};

}  // namespace kiln
