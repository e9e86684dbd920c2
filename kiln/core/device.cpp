#include "kiln/core/device.h"

#include <charconv>
#include <mutex>
#include <optional>
#include <vector>

#include "kiln/core/accelerator.h"
#include "kiln/core/error.h"
#include "kiln/core/fork.h"

namespace kiln {
namespace {

// Names by device type.
struct DeviceNames {
  detail::ForkSafeMutex mutex{detail::ForkOrder::devices};
  std::vector<std::string> names = {"cpu", "reference", "meta"};
};

// Never destroyed: devices are printed by errors that may be thrown while the process exits.
DeviceNames& device_names() {
  static DeviceNames& instance = *new DeviceNames;
  return instance;
}

Device parse_device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  int index = 0;
  if (colon != std::string_view::npos) {
    const char* end = text.data() + text.size();
    const auto [stop, status] = std::from_chars(text.data() + colon + 1, end, index);
    if (status != std::errc() || stop != end || index < 0 || index > 127) {
      throw_error<DeviceError>("Device: malformed index; got '", text,
                               "'; expected 'name' or 'name:index' with an index of 0 to 127");
    }
  }
  const auto find = [&](std::string* known) -> std::optional<Device> {
    DeviceNames& table = device_names();
    std::lock_guard lock(table.mutex);
    for (size_t i = 0; i < table.names.size(); ++i) {
      if (table.names[i] == name) {
        if (static_cast<DeviceType>(i) == kCpu && index != 0) {
          throw_error<DeviceError>("Device: no such device; got '", text,
                                   "'; expected 'cpu', of which there is one");
        }
        return Device(static_cast<DeviceType>(i), index);
      }
      *known += (i == 0 ? "'" : ", '") + table.names[i] + "'";
    }
    return {};
  };
  std::string known;
  if (const auto found = find(&known)) return *found;
  // Some devices are in a library of their own, which is opened when one of them is first named.
  if (detail::open_device_plugin(name)) {
    if (const auto found = find(&known)) return *found;
  }
  // Those that nobody has opened yet.
  for (const char* const plugin : {"opencl", "cuda"}) {
    const std::string quoted = concat("'", plugin, "'");
    if (known.find(quoted) == std::string::npos) known += ", " + quoted;
  }
  throw_error<DeviceError>("Device: no such device; got '", text, "'; expected one of ", known);
}

}  // namespace

Device::Device(const char* name) : Device(parse_device(name == nullptr ? "" : name)) {}
Device::Device(std::string_view name) : Device(parse_device(name)) {}

std::string to_string(Device device) {
  DeviceNames& table = device_names();
  std::string out;
  {
    std::lock_guard lock(table.mutex);
    out = device.type < table.names.size() ? table.names[device.type]
                                           : concat("device type ", device.type);
  }
  if (device.index != 0) out += concat(':', device.index);
  return out;
}

DeviceType detail::register_device_type(std::string_view name) {
  if (name.empty() || name.find(':') != std::string_view::npos) {
    throw_error<DeviceError>("register_backend: malformed device name; got '", name,
                             "'; expected a name without ':'");
  }
  DeviceNames& table = device_names();
  std::lock_guard lock(table.mutex);
  for (const std::string& taken : table.names) {
    if (taken == name) {
      throw_error<DeviceError>("register_backend: device name already taken; got '", name, "'");
    }
  }
  if (table.names.size() >= kMaxDeviceTypes) {
    throw_error<DeviceError>("register_backend: no device type left for '", name,
                             "'; expected at most ", kMaxDeviceTypes);
  }
  table.names.emplace_back(name);
  return static_cast<DeviceType>(table.names.size() - 1);
}

}  // namespace kiln
