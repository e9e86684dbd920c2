// Views in the Backend concept: where a tensor lies in memory.
//
// A backend whose tensors are strided windows on memory declares, for each of its float, int and
// bool primitives P:
//
//   static Layout layout(const P& x);
//   static P as_strided(const P& x, const Shape& shape, const Strides& strides, int64_t offset);
//
// Both are optional, and belong together. Kiln then knows which elements a view shares with another
// tensor: writes through views get their gradients, and as_strided, diagonal and unfold are views.
// A backend without them still computes; where a gradient would depend on what two tensors share,
// the tensor layer throws AutodiffError. Backends over HostTensor need to declare nothing.
//
// What the conformance suite holds a backend to that declares them:
// - element i of a tensor lies at offset + sum i[d] strides[d] of its storage, for every tensor;
// - two tensors share memory exactly if their layouts name the same storage;
// - *_contiguous gives a row-major tensor (one of x's elements is the last dim's next).
#pragma once

#include <concepts>
#include <cstdint>

#include "kiln/core/shape.h"

namespace kiln {

// Numbers are in elements of the tensor's dtype.
struct Layout {
  const Strides* strides = nullptr;  // lives as long as the tensor; null: the layout is not known
  int64_t offset = 0;                // of the first element in the storage
  const void* storage = nullptr;     // tells storages apart
  int64_t capacity = 0;              // how many elements the storage holds

  explicit operator bool() const { return strides != nullptr; }
};

namespace op {

template <class Bk, class P>
concept HasLayout = requires(const P& x) {
  { Bk::layout(x) } -> std::same_as<Layout>;
};
template <class Bk, class P>
concept HasAsStrided = requires(const P& x, const Shape& shape, const Strides& strides) {
  { Bk::as_strided(x, shape, strides, int64_t{}) } -> std::convertible_to<P>;
};

// Whether a backend declares all of the above, none of it, or (an error) a part.
template <class Bk>
constexpr int layout_parts() {
  using F = typename Bk::FloatTensorPrimitive;
  using I = typename Bk::IntTensorPrimitive;
  using B = typename Bk::BoolTensorPrimitive;
  return HasLayout<Bk, F> + HasLayout<Bk, I> + HasLayout<Bk, B> + HasAsStrided<Bk, F> +
         HasAsStrided<Bk, I> + HasAsStrided<Bk, B>;
}

}  // namespace op

// A backend that tells where its tensors lie.
template <class Bk>
concept StridedBackend = op::layout_parts<Bk>() == 6;

}  // namespace kiln
