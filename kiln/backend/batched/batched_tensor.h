// Tensors of a vectorized map: one name for a batch of tensors.
//
// Note [Batched tensors]
// In a region of vmap a batched tensor stands for B tensors of one shape: it tells the layers above
// the shape of one of them, and holds them as the first dim of another tensor, which may itself be
// batched by an outer region. It has the device of what it holds, so that ops mix it with ordinary
// tensors, which mean the same for every element of the batch. While there are such tensors, the
// tables that dispatch finds are those of batched_table.cpp: an op none of whose operands is
// batched goes on to its backend; for others a rule says how one call of the backend computes the
// batch. Where there is no rule, the op runs once for each element.
//
// Autodiff stands above: it records one op for the batch, and its formulas, made of ops, are
// batched by the same rules, inside the region and in a pass after it.
#pragma once

#include <atomic>

#include "kiln/backend/batched/region.h"
#include "kiln/backend/dispatch/dispatch.h"

namespace kiln::batched {

extern std::atomic<int64_t> live;  // how many batched tensors there are

class BatchedTensor final : public TensorBase {
 public:
  // The batch is the first dim of `inner`.
  BatchedTensor(ErasedTensor inner, const Region& region);
  ~BatchedTensor() override;

  const ErasedTensor& inner() const { return inner_; }
  const Region& region() const { return region_; }
  uint64_t level() const { return region_.level; }
  // Of one element; the others lie inner's first stride apart.
  const Strides& strides() const { return strides_; }

 private:
  ErasedTensor inner_;
  Region region_;
  Strides strides_;
};

// Null unless x is batched.
inline const BatchedTensor* as_batched(const ErasedTensor& x) {
  if (live.load(std::memory_order_relaxed) == 0) [[likely]]
    return nullptr;
  return dynamic_cast<const BatchedTensor*>(x.get());
}
// Null unless x is batched by that region.
inline const BatchedTensor* as_batched(const ErasedTensor& x, uint64_t level) {
  const BatchedTensor* found = as_batched(x);
  return found != nullptr && found->level() == level ? found : nullptr;
}

// Throws NotImplementedError, naming op, when x is batched: only what it holds lies in memory.
void check_has_memory(const char* op, const ErasedTensor& x);

// Puts the tables of rules between dispatch and all backends. They stay.
void install();

}  // namespace kiln::batched
