// Anomaly mode: while it is on, nodes remember where they were recorded, and an error in a backward
// pass, or a gradient with NaN, names the op of the forward pass that it belongs to.
#pragma once

#include <atomic>
#include <string>

namespace kiln::autodiff {

enum class AnomalyMode : uint8_t {
  off,
  trace,      // remember where ops were recorded
  check_nan,  // and look for NaN in every gradient
};

namespace detail {
inline constinit std::atomic<AnomalyMode> anomaly_mode{AnomalyMode::off};
}

// For all threads, as in PyTorch.
inline AnomalyMode anomaly_mode() { return detail::anomaly_mode.load(std::memory_order_relaxed); }
inline void set_anomaly_mode(AnomalyMode mode) { detail::anomaly_mode.store(mode); }

// What tells where the program is (a Python binding gives the interpreter's stack); null for none.
using TraceProvider = std::string (*)();
void set_trace_provider(TraceProvider provider);
std::string anomaly_trace();

// Throws an AutodiffError that names the op.
[[noreturn]] void throw_anomaly(const char* op, const std::string& what, const std::string& trace);

}  // namespace kiln::autodiff
