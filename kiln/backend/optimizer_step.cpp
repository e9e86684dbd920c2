#include "kiln/backend/optimizer_step.h"

namespace kiln {

size_t slots_of(const OptimizerStep& step) {
  return std::visit([](const auto& rule) { return rule.slots(); }, step);
}

}  // namespace kiln
