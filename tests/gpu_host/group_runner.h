// Runs kernels as plain code: for tests of what they read, write and wait for.
//
// A kernel's text is compiled by this machine's C++ compiler (KILN_HOST in prelude.k) into a shared
// object. A group's work-items run in turns on stacks of their own, from barrier to barrier; groups
// run one after another. Two forms:
//
//   - Check::accesses: the compiler calls access_checker.h at every load and store (it is told to
//     instrument for the thread sanitizer, whose library is not linked). So every byte is known to
//     lie in memory that the launch was given, and races between work-items and between groups are
//     found in any order of running them.
//   - Check::addresses: AddressSanitizer, whose library must be in the process (LD_PRELOAD). It
//   sees
//     local and private arrays one by one.
//   - Check::none: nothing is checked, for tests of what lies around the kernels.
//
// The first two have the undefined-behaviour sanitizer. This folder knows nothing of Kiln but the
// dialect, so that the driver of gpu_host and a library that plays CUDA's driver can both use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::gpu_host {

enum class Check : uint8_t { accesses, addresses, none };

// What a kernel did wrong, or that it did not compile.
class KernelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A block of memory that a launch may touch.
struct Block {
  std::byte* data;
  size_t size;
};

using Grid = size_t[3];

class HostKernel {
 public:
  // Compiled, or found in `folder` (empty: the system's folder for temporary files), where it is
  // kept. One for each text, for good. Throws KernelError with the compiler's log.
  static const HostKernel& of(const std::string& text, Check check, const std::string& folder);

  size_t arguments() const { return sizes_.size(); }
  size_t argument_size(size_t i) const { return sizes_[i]; }
  bool is_pointer(size_t i) const { return pointers_[i]; }

  // Runs all groups; returns when they have. `arguments` points at each argument; `blocks` are all
  // the memory that pointers among them may lead to. Throws KernelError. One launch at a time.
  void run(const Grid& groups, const Grid& group, void* const* arguments,
           std::span<const Block> blocks) const;

 private:
  HostKernel() = default;
  friend struct Loader;

  Check check_ = Check::accesses;
  std::string name_;
  bool waits_ = false;  // has barriers
  void (*call_)(void* const*) = nullptr;
  int64_t* local_ = nullptr;
  int64_t* group_ = nullptr;
  int64_t* size_ = nullptr;
  Block shared_{};
  Block image_{};  // all that the object file holds: tables, local memory
  std::vector<size_t> sizes_;
  std::vector<bool> pointers_;
};

}  // namespace kiln::gpu_host
