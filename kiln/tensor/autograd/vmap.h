// vmap: a function of tensors, for a whole batch of them at once.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "kiln/backend/batched/region.h"
#include "kiln/tensor/tensor.h"

namespace kiln {

using TensorList = std::vector<Tensor>;

struct VmapOptions {
  // For each input the dim of the batch; nothing: the input is the same for the whole batch. Empty:
  // dim 0 of every input.
  std::vector<std::optional<int64_t>> in_dims = {};
  // For each result the dim where the batch is to be. Empty: dim 0 of every result.
  std::vector<int64_t> out_dims = {};
  Randomness randomness = Randomness::error;
};

// f of the elements of a batch: f sees tensors without the batch's dim, and is called once. Each op
// in it computes the whole batch; Note [Batched tensors] in kiln/backend/batched/batched_tensor.h.
// Differentiable to any order, inside f and outside. Throws ValueError when no input has a batch,
// for dims that are none, or when the batches differ in size.
//
//   // per-sample gradients of loss(w, x):
//   auto of_one = [&](const TensorList& in) { return TensorList{grad({loss(w, in[0])}, {w})[0]}; };
//   vmap(of_one, {x});
TensorList vmap(const std::function<TensorList(const TensorList&)>& f, const TensorList& inputs,
                const VmapOptions& options = {});

namespace detail {

// Whether x is one element of a batch: its values are not those of one tensor.
bool is_of_batch(const Tensor& x);
// The values of all elements of all batches that x is of, to look at; x itself where it is of none.
Tensor of_whole_batch(const Tensor& x);

// A region of vmap, for bindings to other languages. The newest one must end first.
class VmapRegion {
 public:
  VmapRegion(int64_t size, Randomness randomness);
  ~VmapRegion();
  VmapRegion(const VmapRegion&) = delete;
  VmapRegion& operator=(const VmapRegion&) = delete;

  // x, of which dim is the batch, as one element. Throws ValueError for another size.
  Tensor enter(const Tensor& x, int64_t dim) const;
  // Results of f, with the batch as dim 0. To be called before the region ends.
  TensorList leave(const TensorList& results) const;

 private:
  batched::Region region_;
  uint64_t start_;  // the sequence number of the first node that may be recorded in the region
};

}  // namespace detail
}  // namespace kiln
