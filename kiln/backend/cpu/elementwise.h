// The engine that runs element by element kernels over tensors of any strides, and what those
// kernels look like.
#pragma once

#include "kiln/backend/host_tensor.h"
#include "kiln/core/cache_size.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {

// What a kernel works on: n consecutive elements. An input whose bit is set in `scalars` is one
// element that stands for all n.
struct KernelArgs {
  const void* in[3];
  void* out;
  int64_t n;
  unsigned scalars = 0;
  // Write past the cache: the output is larger than it, and starts on a 64-byte boundary.
  bool stream = false;
  const void* params = nullptr;
};
using Kernel = void (*)(const KernelArgs&);

// How a storage type becomes the type that a kernel computes with.
enum class Convert : uint8_t { none, f16, bf16 };

constexpr Convert convert_of(DType dtype) {
  return dtype == DType::f16 ? Convert::f16 : dtype == DType::bf16 ? Convert::bf16 : Convert::none;
}

// Which column of a kernel table serves a floating point dtype: float for the 16-bit types.
constexpr int column_of(DType dtype) { return dtype == DType::f64 ? 1 : 0; }

// A kernel and how the tensors' elements reach it. 16-bit floats are converted to float in chunks.
struct ElementwiseOp {
  Kernel kernel;
  int inputs;
  const void* params = nullptr;
  bool streams = false;  // the kernel honours KernelArgs::stream
  bool raw = false;      // the kernel takes 16-bit floats as they are
};

// Writes op(inputs) to `out`, whose shape the inputs broadcast to. `out` may be one of the inputs,
// but must not overlap one in any other way. `fresh`: nobody has read or written the output's
// memory yet.
void run_elementwise(const ElementwiseOp& op, const HostTensor& out,
                     const HostTensor* const* inputs, bool fresh);

// Whether a fresh output of that size is written past the caches.
inline bool should_stream(int64_t bytes) { return bytes >= memory_bound_bytes(); }

// Runs the kernel over n elements of contiguous operands, in parallel where that pays. Sizes are
// those of one element.
inline void run_contiguous(Kernel kernel, KernelArgs args, const int64_t* in_sizes, int inputs,
                           int64_t out_size) {
  if (args.n <= kGrain) {
    kernel(args);
    return;
  }
  parallel_for(args.n, kGrain, [&](int64_t begin, int64_t end) {
    KernelArgs piece = args;
    for (int i = 0; i < inputs; ++i) {
      if ((args.scalars >> i & 1) == 0) {
        piece.in[i] = static_cast<const char*>(args.in[i]) + begin * in_sizes[i];
      }
    }
    piece.out = static_cast<char*>(args.out) + begin * out_size;
    piece.n = end - begin;
    kernel(piece);
  });
}

// A tensor that an op writes, and what must happen once it is written.
class Output {
 public:
  // The memory for a result of the given shape and dtype: x's own when x is handed over in place
  // and it fits, x's when it is donated, else fresh. `others` are the remaining operands (null
  // where there is none).
  Output(const Arg<HostHandle>& x, const Shape& shape, DType dtype,
         const HostTensor* other = nullptr, const HostTensor* third = nullptr);
  // Also considers a second operand that may be donated.
  Output(const Arg<HostHandle>& x, const Arg<HostHandle>& y, const Shape& shape, DType dtype);

  const HostTensor& tensor() const { return *tensor_; }
  bool fresh() const { return fresh_; }
  // The op's result; call when the kernel is done.
  HostHandle finish() {
    if (in_place_ == nullptr) [[likely]]
      return std::move(tensor_);
    return finish_in_place();
  }

 private:
  void choose(const Arg<HostHandle>& x, const Shape& shape, DType dtype, const HostTensor* other,
              const HostTensor* third);
  HostHandle finish_in_place();

  HostHandle tensor_;
  const HostHandle* in_place_ = nullptr;
  bool fresh_ = false;
};

// Copies the elements of `from` to `to` (same shape and dtype). They must not overlap.
void copy_elements(const HostTensor& from, const HostTensor& to, bool fresh = false);

// x itself when it is row-major, else a row-major copy.
HostHandle contiguous(const HostHandle& x);

}  // namespace kiln::cpu
