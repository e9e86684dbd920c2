#include "kiln/backend/cpu/kernel_table.h"

#include <mutex>

#include "kiln/core/fork.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/kernel_table.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
int64_t this_target() { return HWY_TARGET; }
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {

HWY_EXPORT(this_target);

namespace {
// Never destroyed: threads may run when the process ends.
detail::ForkSafeMutex& list_mutex() {
  static auto& mutex = *new detail::ForkSafeMutex(detail::ForkOrder::kernel_tables);
  return mutex;
}
KernelTableBase* list_head = nullptr;
}  // namespace

void KernelTableBase::enlist() {
  std::lock_guard lock(list_mutex());
  if (enlisted_) return;
  enlisted_ = true;
  next_ = list_head;
  list_head = this;
}

void KernelTableBase::forget_all() {
  std::lock_guard lock(list_mutex());
  for (KernelTableBase* table = list_head; table != nullptr; table = table->next_) table->forget();
}

void restrict_targets_for_test([[maybe_unused]] int64_t targets) {
#if (HWY_TARGETS & (HWY_TARGETS - 1)) != 0  // there is a choice
  hwy::SetSupportedTargetsForTest(targets);
#endif
  KernelTableBase::forget_all();
}

int64_t supported_targets() { return HWY_SUPPORTED_TARGETS & HWY_TARGETS; }

const char* target_name() { return hwy::TargetName(HWY_DYNAMIC_DISPATCH(this_target)()); }

}  // namespace kiln::cpu
#endif
