// A libcuda.so.1 for tests: the functions of CUDA's driver API that Kiln uses, over kernels
// compiled as C++, and strict. Internal.
//
// Work is kept in its stream and done when something waits for the stream (or an event in it), as
// late as a GPU might: who reads a result without waiting reads old bytes. It ends the process with
// "fake cuda: ..." on what a driver would let pass or crash on: handles that are none or no more,
// addresses outside blocks, copies from or to memory that is not pinned, a source that changed, a
// target that was written to and pinned memory that was freed before its copy was done, blocks
// freed twice, arguments that are not the kernel's.
//
// $KILN_FAKE_CUDA sets it up, "name=value" by commas:
//   devices=2          how many GPUs (1)
//   version=11040      of the driver (13000)
//   init=803           what cuInit answers (0)
//   memory=64          MiB of each GPU (4096)
//   fail=cuLaunchKernel:5:719   the fifth call of that function, and (from 700, but for 701) all
//                      after it, answer so; fail=kernel:5:700: the fifth kernel that runs does
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/gpu_host/group_runner.h"

namespace kiln::fake_cuda {

using gpu_host::Block;
using gpu_host::HostKernel;

[[noreturn]] void violation(const std::string& what);

struct Settings {
  int devices = 1;
  int version = 13000;
  int init = 0;
  size_t memory = size_t{4096} << 20;
  std::string fail_function;
  int fail_call = 0;
  int fail_result = 0;
};
const Settings& settings();

// What a launch or a copy does when its turn comes; the result is an error of the context.
using Work = std::function<int()>;

struct Context;
struct Stream {
  Context* context;
  std::vector<Work> queue;
  size_t done = 0;  // of all that were ever queued
  size_t queued = 0;
};
// A copy's pinned memory. What the program must not write to, an earlier copy may.
struct HostCopy {
  const Stream* stream;
  size_t position;  // it is done when that much work of the stream is
  uintptr_t address;
  size_t bytes;
  bool is_source;
  std::shared_ptr<uint64_t> checksum;  // of what must be there when its turn comes
};
struct Event {
  Context* context;
  bool timing = false;
  Stream* stream = nullptr;  // where it was recorded, and behind how much work
  size_t behind = 0;
  std::shared_ptr<double> time_ms;
};
struct Function {
  Context* context;
  const HostKernel* kernel;
};
struct Module {
  Context* context;
  std::string text;
};
struct Context {
  int device = 0;
  bool retained = false;
  int lost = 0;  // the error that it answers for good
  size_t used = 0;
  std::map<uintptr_t, size_t> blocks;
};

// All of the driver. One lock: the tests ask for answers, not for speed.
struct Driver {
  std::recursive_mutex mutex;
  bool initialized = false;
  std::vector<Context> contexts;
  std::map<void*, Stream*> streams;
  std::map<void*, Event*> events;
  std::map<void*, Function*> functions;
  std::map<void*, Module*> modules;
  std::map<uintptr_t, size_t> pinned;
  std::vector<HostCopy> host_copies;  // some of them done
  std::map<std::string, int> calls;
  int kernels = 0;
};
Driver& driver();

// Counts a call; the answer that it was told to give, or that of a lost context, or 0.
int enter(const char* function);
Context* current_context();
void set_current(Context* context);
// Does what is queued in the stream, up to `until` of all that ever was; the context's error.
int drain(Stream& stream, size_t until);
int drain_all(Context& context);

}  // namespace kiln::fake_cuda
