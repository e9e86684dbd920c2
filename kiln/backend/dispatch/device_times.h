// How the profiler learns what ops take on devices that compute on their own. Internal to backends.
//
// While a profile is taken, a device notes two times for each thing that it enqueues, with the row
// that the enqueuing thread is in. It hands them over when it knows them, and when it is asked.
#pragma once

#include <cstdint>
#include <string>

namespace kiln::profiled {

// What this thread computes: a number for add_device_time(). To be asked while a clock runs.
uint32_t current_row();

class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  // From here on, until stop(), it measures.
  virtual void start() noexcept = 0;
  virtual void stop() noexcept = 0;
  // Waits for what was measured, and hands it over.
  virtual void collect() noexcept = 0;
};

// A line of the trace.
struct DeviceLine;
// A device, under the name that the trace shows; for good. While a profile is taken it is started
// at once.
DeviceLine& add_device_clock(DeviceClock* clock, const std::string& name);

// Nanoseconds of the host's steady clock.
void add_device_time(DeviceLine& line, uint32_t row, int64_t begin, int64_t end);

}  // namespace kiln::profiled
