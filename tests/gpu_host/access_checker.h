// Whether the loads and stores of a launch are in bounds, and in an order that barriers make.
//
// Two accesses to a byte, at least one of them a store, by two work-items are a race unless a
// barrier that both pass lies between them. Work-items of different groups never meet at a barrier.
// Who last stored and loaded each byte is kept beside it, with the number of the barrier passed
// before. Atomic accesses do not race. Internal.
#pragma once

#include "tests/gpu_host/group_runner.h"

namespace kiln::gpu_host {

class AccessChecker {
 public:
  AccessChecker(std::span<const Block> blocks, Block shared, Block image);

  void begin_group(uint32_t group);
  // The stack of the work-item that runs from here on, and how many barriers it has passed.
  void run_item(uint32_t item, uint32_t epoch, Block stack) {
    item_ = item;
    epoch_ = epoch;
    stack_ = stack;
  }
  // Throws KernelError.
  void check(const void* address, size_t bytes, bool stores, bool atomic);

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  static constexpr uint32_t kMany = 0xfffffffeu;
  struct Mark {
    uint32_t group = kNone;
    uint32_t item = 0;
    uint32_t epoch = 0;
  };
  struct Shadow {
    Mark stored;
    Mark loaded;
  };
  struct Area {
    const std::byte* begin;
    size_t size;
    std::vector<Shadow> shadow;  // one for every `grain` bytes; none before the first access
    size_t grain;
    bool local;
  };
  bool races(const Mark& mark) const {
    if (mark.group == kNone) return false;
    if (mark.group != group_) return true;
    return mark.epoch == epoch_ && mark.item != item_;
  }
  void note(Shadow& shadow, bool stores, const Area& area, size_t at);
  [[noreturn]] void fail(const char* what, const Area& area, size_t at, bool stores,
                         const Mark* other) const;

  std::vector<Area> areas_;
  size_t last_ = 0;
  Block image_;
  Block stack_{};
  uint32_t group_ = 0;
  uint32_t item_ = 0;
  uint32_t epoch_ = 0;
};

}  // namespace kiln::gpu_host
