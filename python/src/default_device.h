// Where Python makes new tensors for which no device is given: each thread's default.
#pragma once

#include <optional>

#include "kiln/core/device.h"

namespace kiln::python {

Device default_device() noexcept;
void set_default_device(Device device) noexcept;
inline Device device_or_default(std::optional<Device> device) {
  return device ? *device : default_device();
}

}  // namespace kiln::python
