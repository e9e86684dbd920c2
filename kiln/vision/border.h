// What lies beyond the edges of an image.
#pragma once

#include <string>

#include "kiln/core/scalar.h"
#include "kiln/tensor/tensor.h"

namespace kiln::vision {

// "constant": a value; "replicate": the edge again; "reflect": mirrored without the edge,
// cb|abc|ba; "symmetric": mirrored with it, ba|abc|cb; "circular": from the other end.
struct Border {
  std::string mode = "reflect";
  Scalar value = 0;
};

// x [.., H, W] with more rows and columns around; any dtype. Throws ShapeError below two dims and
// for an empty image, ValueError for an unknown mode and a negative width.
Tensor pad_border(const Tensor& x, int64_t top, int64_t bottom, int64_t left, int64_t right,
                  const Border& border = {});

namespace detail {

// Throws ShapeError unless x has two dims or more, the last two of which are not empty.
void require_image(const char* op, const Tensor& x);
// Throws DTypeError unless x is f32 or f64.
void require_float_image(const char* op, const Tensor& x);

}  // namespace detail
}  // namespace kiln::vision
