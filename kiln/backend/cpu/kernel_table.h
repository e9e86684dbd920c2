// KernelTable: the kernels of one file for the instruction set of this machine, chosen once.
//
// A *_kernels.cpp is compiled once per instruction set (Highway's foreach_target.h), and each time
// it fills a table of function pointers. Which of those tables counts is decided at the first use,
// so that an op costs one load and no dispatch.
#pragma once

#include <atomic>
#include <cstdint>

namespace kiln::cpu {

class KernelTableBase {
 public:
  // For tests: forgets what was chosen, in every table, so that the next use chooses anew.
  static void forget_all();

 protected:
  constexpr KernelTableBase() = default;
  void enlist();
  virtual void forget() = 0;

 private:
  KernelTableBase* next_ = nullptr;
  bool enlisted_ = false;
};

// `choose` is HWY_DYNAMIC_DISPATCH of a function that returns the address of its target's table.
// Declare instances constinit at namespace scope.
template <class Table>
class KernelTable final : public KernelTableBase {
 public:
  using Choose = const Table* (*)();
  constexpr explicit KernelTable(Choose choose) : choose_(choose) {}

  const Table& get() {
    const Table* table = chosen_.load(std::memory_order_acquire);
    if (table == nullptr) [[unlikely]] {
      enlist();
      table = choose_();
      chosen_.store(table, std::memory_order_release);
    }
    return *table;
  }

 private:
  void forget() override { chosen_.store(nullptr); }

  Choose choose_;
  std::atomic<const Table*> chosen_{nullptr};
};

// The last lines of a *_kernels.cpp: `const Kernels& name()` returns what `choose`, the function
// of that name in each target's namespace, gives for this machine. KILN_KERNEL_TABLE_OF specializes
// the template `const Kernels<T>& name<T>()`. Highway's headers come first.
#define KILN_KERNEL_TABLE(Kernels, name, choose)                                                \
  HWY_EXPORT(choose);                                                                           \
  const Kernels& name() {                                                                       \
    static constinit KernelTable<Kernels> table([] { return HWY_DYNAMIC_DISPATCH(choose)(); }); \
    return table.get();                                                                         \
  }
#define KILN_KERNEL_TABLE_OF(T, Kernels, name, choose)                                             \
  HWY_EXPORT(choose);                                                                              \
  template <>                                                                                      \
  const Kernels<T>& name<T>() {                                                                    \
    static constinit KernelTable<Kernels<T>> table([] { return HWY_DYNAMIC_DISPATCH(choose)(); }); \
    return table.get();                                                                            \
  }

// For tests: restricts the kernels to the instruction sets in `targets` (Highway's bits; 0 lifts
// the restriction, KILN_INSTRUCTIONS then counts again).
void restrict_targets_for_test(int64_t targets);
// Highway's bits of what this machine has and the kernels were compiled for.
int64_t supported_targets();
// "AVX3": what the kernels use now.
const char* target_name();

}  // namespace kiln::cpu
