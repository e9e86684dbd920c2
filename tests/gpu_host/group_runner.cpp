#include "tests/gpu_host/group_runner.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <sstream>

#include "tests/gpu_host/access_checker.h"
#include "tests/gpu_host/stack_switch.h"

namespace kiln::gpu_host {
namespace {

enum class State : uint8_t { ready, waiting, done };

// The launch that runs.
struct Launch {
  AccessChecker* checker = nullptr;  // null: addresses are AddressSanitizer's to check
  void (*call)(void* const*) = nullptr;
  void* const* arguments = nullptr;
  int64_t* local = nullptr;
  Grid group = {1, 1, 1};
  std::vector<State> states;
  std::vector<int> lines;  // of the barrier that each work-item waits at
  uint32_t epoch = 0;
  size_t running = 0;
  std::string error;
};
Launch* current = nullptr;

void select_item(Launch& launch, size_t item, Block stack) {
  launch.running = item;
  launch.local[0] = static_cast<int64_t>(item % launch.group[0]);
  launch.local[1] = static_cast<int64_t>(item / launch.group[0] % launch.group[1]);
  launch.local[2] = static_cast<int64_t>(item / launch.group[0] / launch.group[1]);
  if (launch.checker != nullptr) {
    launch.checker->run_item(static_cast<uint32_t>(item), launch.epoch, stack);
  }
}

void call_kernel(Launch& launch) {
  try {
    launch.call(launch.arguments);
  } catch (const KernelError& error) {
    if (launch.error.empty()) launch.error = error.what();
  }
}

// What a work-item runs on its own stack.
void item_main() {
  call_kernel(*current);
  current->states[current->running] = State::done;
}

}  // namespace

void wait_at_barrier(int line) {
  Launch& launch = *current;
  launch.states[launch.running] = State::waiting;
  launch.lines[launch.running] = line;
  leave_stack();
}

void note_access(const void* address, size_t bytes, bool stores, bool atomic) {
  current->checker->check(address, bytes, stores, atomic);
}

namespace {

// Every work-item to its next barrier, then over it, until all are done.
void run_group(Launch& launch) {
  const size_t items = launch.states.size();
  std::ranges::fill(launch.states, State::ready);
  launch.epoch = 0;
  for (size_t done = 0; done < items;) {
    size_t waiting = 0;
    done = 0;
    for (size_t i = 0; i < items; ++i) {
      if (launch.states[i] != State::done) {
        const bool fresh = launch.states[i] == State::ready;
        launch.states[i] = State::done;  // unless it waits
        select_item(launch, i, stack_of(i));
        enter_stack(i, fresh ? &item_main : nullptr);
        if (!launch.error.empty()) throw KernelError(launch.error);
      }
      launch.states[i] == State::done ? ++done : ++waiting;
    }
    if (waiting == 0) return;
    if (done > 0) {
      std::ostringstream out;
      out << "barrier: " << waiting << " work-items of a group wait at it and " << done
          << " have ended";
      throw KernelError(out.str());
    }
    for (size_t i = 1; i < items; ++i) {
      if (launch.lines[i] != launch.lines[0]) {
        throw KernelError("barrier: work-items of a group wait at different ones");
      }
    }
    ++launch.epoch;
  }
}

// Without barriers nothing needs a stack of its own.
void run_items(Launch& launch) {
  std::byte* here = static_cast<std::byte*>(__builtin_frame_address(0));
  for (size_t i = 0; i < launch.states.size(); ++i) {
    select_item(launch, i, {here - kStackBytes, kStackBytes});
    call_kernel(launch);
    if (!launch.error.empty()) throw KernelError(launch.error);
  }
}

}  // namespace

void HostKernel::run(const Grid& groups, const Grid& group, void* const* arguments,
                     std::span<const Block> blocks) const {
  const size_t items = group[0] * group[1] * group[2];
  if (items == 0 || items > kStacks) throw KernelError("a group of " + std::to_string(items));
  Launch launch;
  std::unique_ptr<AccessChecker> checker;
  if (check_ == Check::accesses) {
    checker = std::make_unique<AccessChecker>(blocks, shared_, image_);
  }
  launch.checker = checker.get();
  launch.call = call_;
  launch.arguments = arguments;
  launch.local = local_;
  std::memcpy(launch.group, group, sizeof launch.group);
  launch.states.resize(items);
  launch.lines.resize(items);
  *size_ = static_cast<int64_t>(group[0]);
  current = &launch;
  uint32_t number = 0;
  try {
    for (size_t z = 0; z < groups[2]; ++z) {
      for (size_t y = 0; y < groups[1]; ++y) {
        for (size_t x = 0; x < groups[0]; ++x, ++number) {
          group_[0] = static_cast<int64_t>(x);
          group_[1] = static_cast<int64_t>(y);
          group_[2] = static_cast<int64_t>(z);
          if (checker) {
            checker->begin_group(number);
            // Not zeros, which a program might count on.
            std::memset(shared_.data, 0xfb, shared_.size);
          }
          waits_ ? run_group(launch) : run_items(launch);
        }
      }
    }
  } catch (const KernelError& error) {
    current = nullptr;
    throw KernelError(name_ + ": " + error.what());
  }
  current = nullptr;
}

}  // namespace kiln::gpu_host
