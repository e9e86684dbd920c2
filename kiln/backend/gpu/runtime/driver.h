// What the GPU backend asks of a driver: devices, memory, kernels, one queue in order.
//
// OpenCl (opencl.cpp) and Cuda (cuda.cpp) are such, and tests/gpu_host has one of plain code.
// Memory is an opaque handle with offsets, a kernel is text that becomes a binary that becomes a
// function, and everything enqueued on a device runs in its order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kiln::gpu {

// cl_mem; CUdeviceptr.
using Memory = void*;
// cl_kernel; CUfunction.
using Function = void*;
// cl_event; CUevent. A type of its own, beside Memory.
enum class Mark : uintptr_t { none = 0 };

struct Properties {
  std::string name;
  std::string vendor;
  std::string driver;       // its name and version: binaries are kept for it
  size_t memory_bytes = 0;  // of the whole device
  size_t largest_allocation = 0;
  size_t largest_group = 0;
  bool has_f64 = false;
  // Whether f32 division and square root can be, and so are, rounded correctly.
  bool exact_division = false;
  bool is_cpu = false;
  // Blocks have the size that was asked for and are given back at once: so that what reads or
  // writes beside them, or after their time, is seen.
  bool exact_blocks = false;
  // Whether a Memory is an address that other libraries in the process can use.
  bool has_addresses = false;
  int major = 0;  // CUDA's compute capability; 0 elsewhere
  int minor = 0;
};

struct Argument {
  enum class Kind : uint8_t { memory, bytes } kind;
  const void* data;  // of memory: the handle itself
  size_t size;

  static Argument memory(Memory m) { return {Kind::memory, m, 0}; }
  template <class T>
  static Argument bytes(const T& value) {
    return {Kind::bytes, &value, sizeof(T)};
  }
};

// What a launch computes, for messages: the kernel's text and, where there is one, its expression.
// Both live for good.
struct LaunchName {
  const char* file = nullptr;
  const char* part = nullptr;
  size_t local_bytes = 0;  // of local memory that it gives each group
};

// Pinned memory: of the host, kept in place by the driver.
struct HostBlock {
  void* address = nullptr;
  Memory handle = nullptr;  // of the driver
};

struct Extent {
  size_t x = 1;
  size_t y = 1;
  size_t z = 1;
};

// What something took: from one place in the queue to another. `begin` is none where `end` knows
// both times.
struct Timed {
  Mark begin = Mark::none;
  Mark end = Mark::none;
};
struct Times {
  double begin = 0;  // milliseconds, from a place in the queue that is given
  double length = 0;
};

// out [batch, n, m] = a [batch, n, depth] b [batch, depth, m] (+ bias [m], where there is one), out
// in row-major order.
struct Product {
  enum class Element : uint8_t { f64, f32, f16, bf16 };
  // Rows that are `step` elements apart; with `transposed`, columns.
  struct Operand {
    Memory memory = nullptr;
    int64_t offset = 0;
    int64_t step = 0;
    int64_t batch_step = 0;
    bool transposed = false;
  };
  Element element = Element::f32;
  int64_t n = 0;
  int64_t m = 0;
  int64_t depth = 0;
  int64_t batch = 1;
  Operand a;
  Operand b;
  Memory out = nullptr;
  int64_t out_offset = 0;
  Memory bias = nullptr;
  int64_t bias_offset = 0;
};

// y [batch, out, rows, columns] = x [batch, in, height, width] convolved with weight [out, in /
// groups, kernel], all in row-major order; or, of y's gradient in y, the gradient of x or of the
// weight.
struct Convolution {
  enum class Part : uint8_t { forward, input_grad, weight_grad };
  Product::Element element = Product::Element::f32;
  Part part = Part::forward;
  int64_t batch = 0;
  int64_t in = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t out = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t groups = 1;
  int64_t kernel[2] = {1, 1};
  int64_t stride[2] = {1, 1};
  int64_t padding[2] = {0, 0};
  int64_t dilation[2] = {1, 1};
  bool channels_last = false;  // all three, the weight as [out, kernel, in]
  Memory x = nullptr;
  Memory weight = nullptr;
  Memory y = nullptr;
};

// One device and its queue. No two threads call it at once, but for properties().
class Driver {
 public:
  virtual ~Driver() = default;
  virtual const Properties& properties() const = 0;

  // Null when there is no such block of memory.
  virtual Memory allocate(size_t bytes) = 0;
  virtual void release(Memory memory) noexcept = 0;

  // Enqueued. `from` may change when write() returns; `to` is filled when finish() does.
  virtual void write(Memory to, size_t offset, const void* from, size_t bytes) = 0;
  virtual void read(Memory from, size_t offset, void* to, size_t bytes) = 0;
  // `timed`: what is wanted of the launch for times(); its marks are the caller's to release.
  virtual void launch(Function function, const LaunchName& name, Extent groups, Extent group,
                      std::span<const Argument> arguments, Timed* timed) = 0;
  // Waits for all of the above.
  virtual void finish() = 0;

  // Enqueued, by a library that the runtime has found; false where there is none that takes it.
  // `timed` as for launch().
  virtual bool multiply(const Product&, Timed*) { return false; }
  // Whether there is such a library.
  virtual bool multiplies() { return false; }
  // Likewise.
  virtual bool convolve(const Convolution&, Timed*) { return false; }
  virtual bool convolves() { return false; }

  // A null address when there is no such block of the host's memory.
  virtual HostBlock allocate_host(size_t bytes) = 0;
  virtual void release_host(const HostBlock& block) noexcept = 0;
  // Enqueued, between the device and such a block: until the copy is done, `from` must stay as it
  // is, and `to` is undefined.
  virtual void write_from_host(Memory to, size_t offset, const void* from, size_t bytes) = 0;
  virtual void read_to_host(Memory from, size_t offset, void* to, size_t bytes) = 0;

  // After an error: what reads were to fill may be gone, and is not written to any more.
  virtual void abandon_reads() noexcept {}

  // A place in the queue: it is passed when what was enqueued before it is done.
  virtual Mark mark() = 0;
  virtual bool passed(Mark mark) = 0;
  virtual void wait(Mark mark) = 0;
  // Between two that are passed, of the device's time.
  virtual double milliseconds(Mark from, Mark to) = 0;
  virtual void release(Mark mark) noexcept = 0;
  // All passed.
  virtual Times times(Mark base, const Timed& timed) {
    return {milliseconds(base, timed.begin), milliseconds(timed.begin, timed.end)};
  }

  // The function that this text became when Kiln was built; null where it is not among those.
  virtual Function find_ahead(const std::string&) { return nullptr; }
  // Compiles a kernel's text. Throws RuntimeError with the compiler's log.
  virtual std::vector<std::byte> compile(const std::string& text) = 0;
  // The function of that name in a binary; null where the driver does not take the binary.
  virtual Function load(std::span<const std::byte> binary, const std::string& name) = 0;
};

// A way to devices.
struct Runtime {
  const char* name;                            // of its devices, and at the head of messages
  int (*count)();                              // devices of this machine; opens the runtime
  const std::string& (*absence)();             // why there is none; empty where there is one
  std::unique_ptr<Driver> (*open)(int index);  // throws DeviceError
  bool (*is_processor)(int index);             // whether a device of this machine is its processor
};

// GPUs first. The ICD loader is opened when it is asked for the first time.
extern const Runtime kOpenClRuntime;
// As NVIDIA's driver numbers them. Its library is opened when it is asked for the first time.
extern const Runtime kCudaRuntime;

}  // namespace kiln::gpu
