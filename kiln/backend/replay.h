// The arguments of a recorded row when it is called again. A row is a function of its arguments;
// all but its random numbers are the same in a replay. Those reach a row in two ways: as a
// RandomStream, and as the one of AttentionOptions.
#pragma once

#include "kiln/backend/attention_options.h"
#include "kiln/core/random_tape.h"

namespace kiln {

inline RandomStream replayed(const RandomTape& tape, const RandomStream& recorded) {
  return tape(recorded);
}
inline AttentionOptions replayed(const RandomTape& tape, AttentionOptions recorded) {
  recorded.stream = tape(recorded.stream);
  return recorded;
}
template <class T>
const T& replayed(const RandomTape&, const T& recorded) {
  return recorded;
}

}  // namespace kiln
