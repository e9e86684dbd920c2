#include "tests/gpu_host/stack_switch.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <ucontext.h>

// swapcontext asks the kernel for signal masks each time; a group of 256 switches thousands of
// times.
#if defined(__x86_64__)
extern "C" void kiln_switch_stack(void** from, void* to);
asm(R"(
.text
.globl kiln_switch_stack
.hidden kiln_switch_stack
.type kiln_switch_stack,@function
kiln_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size kiln_switch_stack,.-kiln_switch_stack
)");
#endif

namespace kiln::gpu_host {
namespace {

// AddressSanitizer wants to know; null where it is not in the process.
struct Sanitizer {
  void (*start)(void**, const void*, size_t) =
      reinterpret_cast<decltype(start)>(dlsym(RTLD_DEFAULT, "__sanitizer_start_switch_fiber"));
  void (*finish)(void*, const void**, size_t*) =
      reinterpret_cast<decltype(finish)>(dlsym(RTLD_DEFAULT, "__sanitizer_finish_switch_fiber"));
};
const Sanitizer& sanitizer() {
  static const Sanitizer found;
  return found;
}

struct Fiber {
#if defined(__x86_64__)
  void* place = nullptr;
#else
  ucontext_t place{};
#endif
  void* fake_stack = nullptr;
};

std::byte* stacks() {
  static auto* memory =
      static_cast<std::byte*>(mmap(nullptr, kStacks * kStackBytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (memory == MAP_FAILED) throw KernelError("no memory for the stacks of work-items");
  return memory;
}

Fiber fibers[kStacks];
Fiber home;
const void* home_stack = nullptr;
size_t home_bytes = 0;
size_t inside = 0;
void (*begin_with)() = nullptr;

void swap(Fiber& from, Fiber& to) {
#if defined(__x86_64__)
  kiln_switch_stack(&from.place, to.place);
#else
  swapcontext(&from.place, &to.place);
#endif
}

void fiber_main() {
  if (sanitizer().finish != nullptr) sanitizer().finish(nullptr, &home_stack, &home_bytes);
  begin_with();
  // It never comes back here.
  if (sanitizer().start != nullptr) sanitizer().start(nullptr, home_stack, home_bytes);
  swap(fibers[inside], home);
  __builtin_trap();
}

}  // namespace

Block stack_of(size_t item) { return {stacks() + item * kStackBytes, kStackBytes}; }

void enter_stack(size_t item, void (*begin)()) {
  Fiber& fiber = fibers[item];
  const Block stack = stack_of(item);
  if (begin != nullptr) {
    begin_with = begin;
    fiber.fake_stack = nullptr;
#if defined(__x86_64__)
    // As if it had been left: six registers below where it returns to, aligned as after a call.
    auto** top = reinterpret_cast<void**>(stack.data + stack.size);
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(&fiber_main);
    for (int i = 0; i < 6; ++i) *--top = nullptr;
    fiber.place = top;
#else
    getcontext(&fiber.place);
    fiber.place.uc_stack.ss_sp = stack.data;
    fiber.place.uc_stack.ss_size = stack.size;
    fiber.place.uc_link = nullptr;
    makecontext(&fiber.place, &fiber_main, 0);
#endif
  }
  inside = item;
  if (sanitizer().start != nullptr) {
    sanitizer().start(&home.fake_stack, stack.data, stack.size);
  }
  swap(home, fiber);
  if (sanitizer().finish != nullptr) sanitizer().finish(home.fake_stack, nullptr, nullptr);
}

void leave_stack() {
  Fiber& fiber = fibers[inside];
  if (sanitizer().start != nullptr) sanitizer().start(&fiber.fake_stack, home_stack, home_bytes);
  swap(fiber, home);
  if (sanitizer().finish != nullptr) {
    sanitizer().finish(fiber.fake_stack, &home_stack, &home_bytes);
  }
}

}  // namespace kiln::gpu_host
