// Hooks on what the graph saves for the backward pass.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "kiln/autodiff/grad_mode.h"

namespace kiln::autodiff {

// Brings saved values back, each time that it is called.
template <class P>
using Unpack = std::function<P()>;
// Sees a tensor that is about to be saved, and gives what is kept for it.
template <class P>
using Pack = std::function<Unpack<P>(const P&)>;

namespace detail {
template <class B>
std::vector<Pack<typename B::FloatTensorPrimitive>>& packs() {
  static thread_local std::vector<Pack<typename B::FloatTensorPrimitive>> stack;
  return stack;
}
}  // namespace detail

// Whether what this thread records is saved through hooks.
template <class B>
bool packs_saved() {
  return detail::recording<B>.packs;
}

// From here to pop_pack(), what this thread's graph saves goes through `pack`; that of an outer
// scope rests meanwhile. An empty one: nothing goes through hooks.
template <class B>
void push_pack(Pack<typename B::FloatTensorPrimitive> pack) {
  detail::recording<B>.packs = static_cast<bool>(pack);
  detail::packs<B>().push_back(std::move(pack));
}
// False when there is none to end.
template <class B>
bool pop_pack() {
  auto& stack = detail::packs<B>();
  if (stack.empty()) return false;
  stack.pop_back();
  detail::recording<B>.packs = !stack.empty() && stack.back();
  return true;
}

// What the innermost hook makes of x. What the hook itself records is saved as it is.
template <class B>
Unpack<typename B::FloatTensorPrimitive> pack_saved(const typename B::FloatTensorPrimitive& x) {
  struct Plain {
    Plain() { push_pack<B>(nullptr); }
    ~Plain() { pop_pack<B>(); }
  };
  const auto pack = detail::packs<B>().back();
  const Plain plain;
  return pack(x);
}

}  // namespace kiln::autodiff
