// Where the elements of a view lie in the tensor that it is a view of. Internal to kiln/tensor.
#pragma once

#include "kiln/backend/layout.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

// Whether two indices may lead to one element: not when each stride leaps over all that the smaller
// ones reach.
bool may_repeat(const Shape& shape, const Strides& strides);

// base + sum i[k] steps[k] for every index i of `shape`, as one row: i64.
Tensor positions(const Shape& shape, const Strides& steps, int64_t base, Device device);

// The region of a tensor whose layout is known, of which only shape and strides matter: it selects
// the same elements of every tensor of that shape.
class Region final : public RefCounted, public Pooled {
 public:
  // Throws AutodiffError, naming op, where the view reaches memory that is no element of base, or
  // where base is no tensor of distinct elements.
  Region(const char* op, const Value& base, const Shape& shape, const Strides& strides,
         int64_t offset);
  // Where `view` lies in base. Both have a layout.
  static Handle<Region> of(const char* op, const Value& base, const Value& view);

  const Shape& base_shape() const { return base_shape_; }
  const Shape& shape() const { return shape_; }

  // Three linear maps, each with the gradient that another one is. All are recorded.
  Tensor take(const Tensor& x) const;   // the region of x
  Tensor clear(const Tensor& x) const;  // x with zeros in the region
  Tensor spread(
      const Tensor& part) const;  // zeros with `part` in the region, summed where it repeats

  // Whether the region of a row-major tensor is regular in its memory; then clear(x) may be
  // computed in x's own memory, which nobody else may see.
  bool is_regular() const { return order_.empty() && !is_listed(); }
  void clear_in_place(Value& x) const;

 private:
  bool is_listed() const { return places_.defined(); }
  Tensor in_rows(const Tensor& x) const;
  Tensor out_of_rows(const Tensor& rows) const;
  ErasedTensor view_of(const Value& rows) const;
  Handle<Region> self() const { return Handle<Region>::share(const_cast<Region*>(this)); }

  Shape base_shape_;
  Shape shape_;
  // The region of a base whose dims were put in `order_` (empty: as they are) and made row-major
  // ...
  Dims order_;
  Strides strides_;
  int64_t offset_ = 0;
  bool repeats_ = false;  // an element may be in the region several times
  // ... or, where no order makes base row-major, the place of each element in the row-major order.
  Tensor places_;
};

}  // namespace kiln::detail
