#include "kiln/backend/cpu/kernel_table.h"

#include <cstdlib>
#include <mutex>
#include <string_view>

#include "kiln/core/error.h"
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

void set_targets([[maybe_unused]] int64_t targets) {
#if (HWY_TARGETS & (HWY_TARGETS - 1)) != 0  // there is a choice
  hwy::SetSupportedTargetsForTest(targets);
#endif
}

// What KILN_INSTRUCTIONS lets the kernels use, as Highway's bits; 0 for all.
int64_t allowed_targets() {
  const char* text = std::getenv("KILN_INSTRUCTIONS");
  if (text == nullptr || *text == '\0') return 0;
  const std::string_view name(text);
  if (name == "baseline") return HWY_STATIC_TARGET;
#if HWY_ARCH_X86 && !defined(HWY_COMPILE_ONLY_STATIC)
  if (name == "avx2") return HWY_AVX2 | HWY_STATIC_TARGET;
  if (name == "avx512") return HWY_AVX3 | HWY_AVX2 | HWY_STATIC_TARGET;
  const char* names = "baseline, avx2 or avx512";
#else
  const char* names = "baseline";
#endif
  throw_error<ValueError>("KILN_INSTRUCTIONS is \"", name, "\"; expected ", names);
}

// Heeds KILN_INSTRUCTIONS, before anything is chosen.
void heed_environment() {
  static const bool done = [] {
    if (const int64_t targets = allowed_targets(); targets != 0) set_targets(targets);
    return true;
  }();
  static_cast<void>(done);
}
}  // namespace

void KernelTableBase::enlist() {
  heed_environment();
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

void restrict_targets_for_test(int64_t targets) {
  heed_environment();
  set_targets(targets == 0 ? allowed_targets() : targets);
  KernelTableBase::forget_all();
}

int64_t supported_targets() {
  heed_environment();
  return HWY_SUPPORTED_TARGETS & HWY_TARGETS;
}

const char* target_name() {
  heed_environment();
  return hwy::TargetName(HWY_DYNAMIC_DISPATCH(this_target)());
}

}  // namespace kiln::cpu
#endif
