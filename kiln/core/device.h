// Where a tensor lives: a backend, by its registered number, and an index within it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

// Number of a registered backend. Kiln's own come first; others get theirs from register_backend.
using DeviceType = uint8_t;
inline constexpr DeviceType kCpu = 0;
inline constexpr DeviceType kReference = 1;
inline constexpr int kMaxDeviceTypes = 16;

struct Device {
  DeviceType type = kCpu;
  int8_t index = 0;

  constexpr Device() = default;
  constexpr Device(DeviceType t, int i = 0) : type(t), index(static_cast<int8_t>(i)) {}
  // "cpu", "reference", "name", "name:1". Throws DeviceError for a name that no backend registered.
  Device(const char* name);
  Device(std::string_view name);

  friend constexpr bool operator==(Device, Device) = default;
};

// "cpu", "name:1".
std::string to_string(Device device);

namespace detail {
// Gives `name` the next free device type; used by register_backend. Throws DeviceError when the
// name is taken or the table is full.
DeviceType register_device_type(std::string_view name);
}  // namespace detail

}  // namespace kiln
