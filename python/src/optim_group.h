// A group of an optimizer as C++ sees it: its settings and its parameters' state are Python dicts,
// which anyone may change between two steps.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "binding.h"
#include "kiln/core/cached_vector.h"
#include "kiln/optim/optimizer.h"

namespace kiln::python {

template <class T>
using CachedVector = kiln::detail::CachedVector<T>;

// A name in such dicts, made once.
class DictKey {
 public:
  explicit DictKey(const char* name) : name_(name), object_(PyUnicode_InternFromString(name)) {}
  const char* name() const { return name_; }
  // Borrowed; null when the dict has no such key.
  PyObject* find_in(nb::handle dict) const;

 private:
  const char* name_;
  PyObject* object_;
};

// What a group's dict says now. `op` names the optimizer in errors.
class GroupOptions {
 public:
  // Throws TypeError unless `group` is a dict.
  GroupOptions(const char* op, nb::handle group);
  // The value. Throws KeyError when there is none.
  nb::object at(const DictKey& key) const;
  // A number, also one in a tensor of one element. Throws TypeError for anything else.
  double number(const DictKey& key) const;
  // A number of a tuple or list of `count`; None stands for `none`.
  double number(const DictKey& key, int index, int count, double none) const;
  // A whole number. Throws ValueError for one that has a fraction or does not fit.
  int64_t whole(const DictKey& key) const;
  // A string; nothing for None or a key that is missing. Throws TypeError for anything else.
  std::optional<std::string> text(const DictKey& key) const;
  // Whether the value is true; a key that is missing means false.
  bool flag(const DictKey& key) const;
  const char* op() const { return op_; }

 private:
  double number_of(const DictKey& key, nb::handle value) const;

  const char* op_;
  nb::handle group_;
};

// The parameters of a group that have a gradient, with their state: what one step works on.
class GroupMembers {
 public:
  static constexpr size_t kMostSlots = 6;
  // A tensor for each member, from its state or made for it.
  struct Slot {
    const DictKey* key;
    CachedVector<Tensor> tensors;
    CachedVector<bool> made;  // it is not in the state yet
  };

  // Gradients come from `gradients` or, where that is null, from each parameter's grad. Under
  // 'maximize' they are negated. Throws ShapeError or DeviceError for a gradient that does not fit
  // its parameter.
  GroupMembers(const GroupOptions& options, nb::handle state, const Gradients* gradients);

  size_t size() const { return params.size(); }
  // Finds the members' dicts in the state; new ones join it in keep().
  void find_state();
  // The state's tensors of this name; as `info` says where there is none. Throws ShapeError or
  // DeviceError when one does not fit its parameter, and DTypeError for another dtype unless
  // `any_dtype`.
  Slot slot(const DictKey& key, const optim::StateInfo& info, bool any_dtype);
  // A number of member i's state: a 0-d tensor or, in old files, a number.
  double number(size_t i, const DictKey& key, double initial) const;
  void keep_number(size_t i, const DictKey& key, double value);
  // Reads how many steps each has seen and counts one more: the state's 'step', a 0-d tensor, or a
  // number in old files. To be called when nothing else is left to check.
  void count_steps();
  // Puts what was made into the state.
  void keep(std::span<Slot* const> slots);

  CachedVector<Tensor> params;
  CachedVector<Tensor> grads;
  CachedVector<int64_t> steps;  // before this one, after count_steps()
  int64_t numel = 0;            // of all parameters
  bool uniform = true;          // they are of one dtype and device

 private:
  void check_fits(const char* what, const Tensor& x, const Tensor& param, bool any_dtype) const;
  double number_of(PyObject* value, const char* name) const;

  const GroupOptions& options_;
  nb::handle state_;
  CachedVector<nb::object> keys_;     // the parameters' objects
  CachedVector<nb::object> entries_;  // their dicts
};

// Calls run(first, params, grads, slots) for each set of members that one fused call can take:
// those that are alike by `alike(i, j)` and of one dtype and device. `first` is one of them, and
// slots[s] holds their tensors of *all[s]. Usually that is one set, of all members.
template <class Alike, class Run>
void for_each_batch(GroupMembers& members, std::span<GroupMembers::Slot* const> all, Alike&& alike,
                    Run&& run) {
  using Slots = std::array<std::span<Tensor>, GroupMembers::kMostSlots>;
  const auto fit = [&](size_t i, size_t j) {
    return alike(i, j) && members.params[i].dtype() == members.params[j].dtype() &&
           members.params[i].device() == members.params[j].device();
  };
  size_t i = 1;
  while (i < members.size() && alike(0, i)) ++i;
  if (i >= members.size() && members.uniform) {
    Slots slots;
    for (size_t s = 0; s < all.size(); ++s) slots[s] = all[s]->tensors;
    run(0, std::span<Tensor>(members.params), std::span<const Tensor>(members.grads), slots);
    return;
  }
  std::vector<std::vector<size_t>> batches;
  for (i = 0; i < members.size(); ++i) {
    auto same = batches.begin();
    while (same != batches.end() && !fit(same->front(), i)) ++same;
    if (same == batches.end()) same = batches.emplace(same);
    same->push_back(i);
  }
  for (const auto& batch : batches) {
    // Handles to the same tensors, side by side.
    const auto gather = [&](std::span<const Tensor> from) {
      std::vector<Tensor> out;
      for (const size_t k : batch) out.push_back(from[k]);
      return out;
    };
    std::vector<Tensor> params = gather(members.params);
    const std::vector<Tensor> grads = gather(members.grads);
    std::array<std::vector<Tensor>, GroupMembers::kMostSlots> gathered;
    Slots slots;
    for (size_t s = 0; s < all.size(); ++s) {
      gathered[s] = gather(all[s]->tensors);
      slots[s] = gathered[s];
    }
    run(batch.front(), std::span<Tensor>(params), std::span<const Tensor>(grads), slots);
  }
}

// (optim_lbfgs.cpp)
void bind_lbfgs(nb::module_& m);

}  // namespace kiln::python
