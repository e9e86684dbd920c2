// The profiler: what every op cost, as a table and as a trace to look at.
//
//   {
//     const kiln::Profile profile;
//     train_step();
//     std::puts(profile.table().c_str());
//     profile.write_trace("step.json");  // for chrome://tracing or https://ui.perfetto.dev
//   }
//
// An op is a row of the backend op table (docs/ops.md), as it arrives at its backend: those of the
// forward pass, of the backward pass and of the optimizer. Those that compute one of the functions
// of functions.def say which: "float_unary(erfc)". While no profile is being taken nothing
// is measured, and nothing is tested for: dispatch finds the backends' own tables.
//
// The environment variable KILN_PROFILE takes a profile of the whole program: 1 prints the table to
// stderr at its end; any other value is the path of a trace that is written besides.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kiln {

// All calls of one op.
struct ProfileRow {
  std::string op;
  int64_t count = 0;
  double seconds = 0.0;     // within the op, summed over threads
  int64_t bytes = 0;        // of the tensors that it was given and that it returned
  int64_t allocations = 0;  // blocks taken from the allocator
  // Of products, convolutions, attention and recurrences, by their shapes: a multiplication with
  // its addition is 2. Other ops have none.
  int64_t flops = 0;
  // What a GPU took for the op's kernels and copies, by its own clock; 0 for ops of the host. To
  // ask for the rows waits for the GPUs.
  double device_seconds = 0.0;
};

// Takes a profile from construction to stop() or destruction, on all threads. Several may be taken
// at once.
class Profile {
 public:
  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  void stop();

  // The ops called so far (or until stop()), those that took longest first.
  std::vector<ProfileRow> rows() const;
  // The same as text, with a line of totals.
  std::string table() const;
  // Every call in Chrome's trace format: JSON whose events carry thread, begin, duration, shape of
  // the first tensor, bytes and allocations. After a million calls further ones are only counted.
  std::string trace() const;
  // Writes that to a file. Throws IoError.
  void write_trace(const std::string& path) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// const auto running = kiln::profile();
inline Profile profile() { return Profile(); }

}  // namespace kiln
