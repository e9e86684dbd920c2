#include "kiln/core/random_tape.h"

#include <algorithm>

#include "kiln/core/error.h"

namespace kiln {

RandomTape::RandomTape() {
  for (const Generator::Known& known : Generator::all()) {
    parts_.push_back({known, known.state.offset, known.state});
  }
}

void RandomTape::finish() {
  for (const Generator::Known& known : Generator::all()) {
    const auto part = std::find_if(parts_.begin(), parts_.end(),
                                   [&](const Part& p) { return p.begin.id == known.id; });
    if (part == parts_.end()) continue;
    const RandomStream& first = part->begin.state;
    if (known.seedings != part->begin.seedings || known.state.seed != first.seed ||
        known.state.offset < first.offset) {
      throw_error<ValueError>(
          "RandomTape: the recorded step set the seed or the state of a generator; got seed ",
          known.state.seed, "; expected a step that only draws");
    }
    part->end = known.state.offset;
  }
  std::erase_if(parts_, [](const Part& p) { return p.end == p.begin.state.offset; });
}

void RandomTape::advance() {
  for (Part& part : parts_) {
    const uint64_t blocks = part.end - part.begin.state.offset;
    const auto taken = Generator::reserve_from(part.begin.id, static_cast<int64_t>(4 * blocks));
    if (taken) part.now = *taken;
  }
}

RandomStream RandomTape::operator()(const RandomStream& recorded) const {
  for (const Part& part : parts_) {
    const RandomStream& first = part.begin.state;
    if (recorded.generator != part.begin.id || recorded.seed != first.seed ||
        recorded.offset < first.offset || recorded.offset >= part.end) {
      continue;
    }
    return {part.now.seed, part.now.offset + (recorded.offset - first.offset), recorded.generator};
  }
  return recorded;
}

}  // namespace kiln
