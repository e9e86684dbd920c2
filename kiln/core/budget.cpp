#include "kiln/core/budget.h"

#include "kiln/core/error.h"

namespace kiln {

namespace {

uint64_t limit_of(uint64_t bytes, uint64_t ratio) {
  uint64_t limit = 0;
  const bool huge = __builtin_mul_overflow(bytes, ratio, &limit) ||
                    __builtin_add_overflow(limit, Budget::kAllowance, &limit);
  return huge ? UINT64_MAX / 2 : std::min(limit, UINT64_MAX / 2);
}

}  // namespace

Budget::Budget(std::string subject, uint64_t bytes, uint64_t ratio)
    : subject_(std::move(subject)), input_(bytes), ratio_(ratio), limit_(limit_of(bytes, ratio)) {}

void Budget::refuse(uint64_t bytes, const char* what) {
  release(bytes);
  throw_error<IoError>(subject_, " is refused: ", what, " would take more than ", ratio_,
                       " times its size in memory; got ", bytes, " bytes after ", used(),
                       " for an input of ", input_, "; expected at most ", limit_,
                       " in all (a compressed file that you trust: unpack it first, or load it "
                       "with a larger max_ratio)");
}

}  // namespace kiln
