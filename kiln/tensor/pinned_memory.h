// Pinned memory: host memory that a GPU reads and writes by itself, so that a copy is under way
// while the program goes on.
//
//   const Tensor batch = pin_memory(images);
//   const Tensor x = to_non_blocking(batch, "cuda");   // enqueued
//   const Tensor y = to_non_blocking(model(x), "cpu"); // pinned; its values come later
//   cuda::synchronize();                               // now they are there
#pragma once

#include <optional>

#include "kiln/tensor/tensor.h"

namespace kiln {

// A copy of x in pinned memory of the device's driver; without a device that of the first GPU
// ("cuda" before "opencl"). x itself where it is in such memory, and, without a device, where there
// is no GPU. Differentiable. Throws DeviceError for a device that has no pinned memory or is not
// there, and for an x that is not on the cpu; ValueError where there is no such memory left.
Tensor pin_memory(const Tensor& x, std::optional<Device> device = {});

// Whether x is in pinned memory (of this device's driver).
bool is_pinned(const Tensor& x, std::optional<Device> device = {});

// x.to(device), which may return before the copy is done:
// - from pinned, row-major memory to a GPU the copy is enqueued. What the GPU does later sees the
//   values; x must not be written to until it is done (synchronize(), or an event). Its memory is
//   kept until then, whether or not x is.
// - from a GPU to the cpu the result is pinned, and its values are there after synchronize(), or
//   after an event that is recorded later is passed. Until then they are undefined.
// Every other copy is done when it returns.
Tensor to_non_blocking(const Tensor& x, Device device);

// to.copy_(from), in the same way: `to` is on a GPU, or in pinned, row-major memory of its driver.
Tensor& copy_non_blocking(Tensor& to, const Tensor& from);

}  // namespace kiln
