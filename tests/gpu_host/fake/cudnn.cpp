// A libcudnn.so.9 for tests: convolutions as NVIDIA's documentation has them, computed one number
// at a time when their turn in the stream comes. It offers an algorithm whose results differ from
// run to run before one whose results do not, and ends the process when the first is used.
#include <vector>

#include "tests/gpu_host/fake/fake_library.h"

using namespace kiln::fake_cuda;

namespace {

struct Handle {
  void* stream = nullptr;
};
// Of images [n, c, h, w], or of filters [k, c, h, w]; with `last` they lie as [n, h, w, c].
struct Descriptor {
  Real type = Real::f32;
  bool last = false;
  int64_t size[4] = {};
  int64_t numel() const { return size[0] * size[1] * size[2] * size[3]; }
  int64_t at(int64_t n, int64_t c, int64_t h, int64_t w) const {
    if (last) return ((n * size[2] + h) * size[3] + w) * size[1] + c;
    return ((n * size[1] + c) * size[2] + h) * size[3] + w;
  }
};
struct Convolution {
  int64_t padding[2] = {};
  int64_t stride[2] = {1, 1};
  int64_t dilation[2] = {1, 1};
  int64_t groups = 1;
  int math = 0;
};
struct Choice {
  int algorithm;
  int status;
  float time;
  size_t memory;
  int deterministic;
  int math;
  int reserved[3];
};
constexpr size_t kWorkspace = 1024;
int convolutions = 0;
int channels_last = 0;  // of them

bool set(Descriptor* d, int format, int type, int a, int b, int c, int e) {
  if (format != 0 && format != 1) return false;
  d->last = format == 1;
  switch (type) {
    case 0:
      d->type = Real::f32;
      break;
    case 1:
      d->type = Real::f64;
      break;
    case 2:
      d->type = Real::f16;
      break;
    case 9:
      d->type = Real::bf16;
      break;
    default:
      return false;
  }
  const int sizes[] = {a, b, c, e};
  for (int k = 0; k < 4; ++k) d->size[k] = sizes[k];
  return a > 0 && b > 0 && c > 0 && e > 0;
}

bool fits(const Descriptor& x, const Descriptor& w, const Descriptor& y, const Convolution& c) {
  bool fine = x.type == w.type && x.type == y.type && x.last == w.last && x.last == y.last &&
              x.size[0] == y.size[0] && x.size[1] == w.size[1] * c.groups &&
              y.size[1] == w.size[0] && w.size[0] % c.groups == 0;
  for (int d = 0; d < 2; ++d) {
    const int64_t reach = c.dilation[d] * (w.size[2 + d] - 1) + 1;
    fine = fine && y.size[2 + d] == (x.size[2 + d] + 2 * c.padding[d] - reach) / c.stride[d] + 1;
  }
  return fine;
}

// f(place in x, place in w, place in y) for every product that a convolution adds.
template <class F>
void each_product(const Descriptor& x, const Descriptor& w, const Descriptor& y,
                  const Convolution& c, F&& f) {
  const int64_t outs = w.size[0] / c.groups;
  for (int64_t n = 0; n < y.size[0]; ++n) {
    for (int64_t o = 0; o < y.size[1]; ++o) {
      for (int64_t r = 0; r < y.size[2]; ++r) {
        for (int64_t q = 0; q < y.size[3]; ++q) {
          for (int64_t i = 0; i < w.size[1]; ++i) {
            for (int64_t a = 0; a < w.size[2]; ++a) {
              for (int64_t b = 0; b < w.size[3]; ++b) {
                const int64_t h = r * c.stride[0] - c.padding[0] + a * c.dilation[0];
                const int64_t v = q * c.stride[1] - c.padding[1] + b * c.dilation[1];
                if (h < 0 || v < 0 || h >= x.size[2] || v >= x.size[3]) continue;
                f(x.at(n, o / outs * w.size[1] + i, h, v), w.at(o, i, a, b), y.at(n, o, r, q));
              }
            }
          }
        }
      }
    }
  }
}

int choose(const Descriptor& x, const Descriptor& w, const Descriptor& y, const Convolution& c,
           int wanted, int* count, Choice* to) {
  *count = 0;
  if (!fits(x, w, y, c) || wanted < 2) return 3;
  to[0] = {0, 0, 1.0f, kWorkspace, 0, c.math, {}};
  to[1] = {1, 0, 2.0f, kWorkspace, 1, c.math, {}};
  *count = 2;
  return 0;
}

// Computes one of the three into `out`, when its turn comes.
int run(void* handle, const void* alpha, const Descriptor& x, const void* xs, const Descriptor& w,
        const void* ws, const Descriptor& y, const void* ys, const Convolution& c, int algorithm,
        const void* workspace, size_t bytes, const void* beta, int part) {
  const Descriptor* all[] = {&x, &w, &y};
  const void* memory[] = {xs, ws, ys};
  if (algorithm != 1) library_violation("cudnn: an algorithm whose results differ from run to run");
  if (!fits(x, w, y, c)) return 3;
  for (int k = 0; k < 3; ++k) {
    if (!kiln_fake_cuda_holds(memory[k],
                              static_cast<size_t>(all[k]->numel()) * size_of(all[k]->type))) {
      library_violation("cudnn: an operand is not all in a block");
    }
  }
  if (bytes < kWorkspace || !kiln_fake_cuda_holds(workspace, bytes)) {
    library_violation("cudnn: the workspace is too small, or no block");
  }
  const bool wide = x.type == Real::f64;
  const double one = wide ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
  const double zero = wide ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  if (one != 1.0 || zero != 0.0) library_violation("cudnn: alpha and beta");
  ++convolutions;
  channels_last += x.last ? 1 : 0;
  kiln_fake_cuda_enqueue(static_cast<Handle*>(handle)->stream, [=] {
    const Descriptor& out = part == 0 ? y : part == 1 ? x : w;
    std::vector<double> sums(static_cast<size_t>(out.numel()));
    each_product(x, w, y, c, [&](int64_t i, int64_t k, int64_t o) {
      if (part == 0) {
        sums[static_cast<size_t>(o)] += load(xs, i, x.type) * load(ws, k, w.type);
      } else if (part == 1) {
        sums[static_cast<size_t>(i)] += load(ys, o, y.type) * load(ws, k, w.type);
      } else {
        sums[static_cast<size_t>(k)] += load(ys, o, y.type) * load(xs, i, x.type);
      }
    });
    auto* to = const_cast<void*>(part == 0 ? ys : part == 1 ? xs : ws);
    for (size_t i = 0; i < sums.size(); ++i) store(to, static_cast<int64_t>(i), out.type, sums[i]);
  });
  return 0;
}

}  // namespace

FAKE kiln_fake_cudnn_convolutions() { return convolutions; }
FAKE kiln_fake_cudnn_channels_last() { return channels_last; }

FAKE cudnnCreate(Handle** to) {
  *to = new Handle;
  return 0;
}
FAKE cudnnSetStream(Handle* handle, void* stream) {
  handle->stream = stream;
  return 0;
}
FAKE cudnnCreateTensorDescriptor(Descriptor** to) {
  *to = new Descriptor;
  return 0;
}
FAKE cudnnSetTensor4dDescriptor(Descriptor* d, int format, int type, int n, int c, int h, int w) {
  return set(d, format, type, n, c, h, w) ? 0 : 3;
}
FAKE cudnnDestroyTensorDescriptor(Descriptor* d) {
  delete d;
  return 0;
}
FAKE cudnnCreateFilterDescriptor(Descriptor** to) {
  *to = new Descriptor;
  return 0;
}
FAKE cudnnSetFilter4dDescriptor(Descriptor* d, int type, int format, int k, int c, int h, int w) {
  return set(d, format, type, k, c, h, w) ? 0 : 3;
}
FAKE cudnnDestroyFilterDescriptor(Descriptor* d) {
  delete d;
  return 0;
}
FAKE cudnnCreateConvolutionDescriptor(Convolution** to) {
  *to = new Convolution;
  return 0;
}
FAKE cudnnSetConvolution2dDescriptor(Convolution* c, int pad_h, int pad_w, int stride_h,
                                     int stride_w, int dilation_h, int dilation_w, int mode,
                                     int compute) {
  if (mode != 1 || compute > 1) return 3;
  c->padding[0] = pad_h;
  c->padding[1] = pad_w;
  c->stride[0] = stride_h;
  c->stride[1] = stride_w;
  c->dilation[0] = dilation_h;
  c->dilation[1] = dilation_w;
  return 0;
}
FAKE cudnnSetConvolutionGroupCount(Convolution* c, int groups) {
  c->groups = groups;
  return 0;
}
FAKE cudnnSetConvolutionMathType(Convolution* c, int math) {
  c->math = math;
  return 0;
}
FAKE cudnnDestroyConvolutionDescriptor(Convolution* c) {
  delete c;
  return 0;
}
FAKE cudnnGetConvolutionForwardAlgorithm_v7(Handle*, Descriptor* x, Descriptor* w, Convolution* c,
                                            Descriptor* y, int wanted, int* count, Choice* to) {
  return choose(*x, *w, *y, *c, wanted, count, to);
}
FAKE cudnnGetConvolutionBackwardDataAlgorithm_v7(Handle*, Descriptor* w, Descriptor* y,
                                                 Convolution* c, Descriptor* x, int wanted,
                                                 int* count, Choice* to) {
  return choose(*x, *w, *y, *c, wanted, count, to);
}
FAKE cudnnGetConvolutionBackwardFilterAlgorithm_v7(Handle*, Descriptor* x, Descriptor* y,
                                                   Convolution* c, Descriptor* w, int wanted,
                                                   int* count, Choice* to) {
  return choose(*x, *w, *y, *c, wanted, count, to);
}
FAKE cudnnConvolutionForward(Handle* handle, const void* alpha, Descriptor* x, const void* xs,
                             Descriptor* w, const void* ws, Convolution* c, int algorithm,
                             void* workspace, size_t bytes, const void* beta, Descriptor* y,
                             void* ys) {
  return run(handle, alpha, *x, xs, *w, ws, *y, ys, *c, algorithm, workspace, bytes, beta, 0);
}
FAKE cudnnConvolutionBackwardData(Handle* handle, const void* alpha, Descriptor* w, const void* ws,
                                  Descriptor* y, const void* ys, Convolution* c, int algorithm,
                                  void* workspace, size_t bytes, const void* beta, Descriptor* x,
                                  void* xs) {
  return run(handle, alpha, *x, xs, *w, ws, *y, ys, *c, algorithm, workspace, bytes, beta, 1);
}
FAKE cudnnConvolutionBackwardFilter(Handle* handle, const void* alpha, Descriptor* x,
                                    const void* xs, Descriptor* y, const void* ys, Convolution* c,
                                    int algorithm, void* workspace, size_t bytes, const void* beta,
                                    Descriptor* w, void* ws) {
  return run(handle, alpha, *x, xs, *w, ws, *y, ys, *c, algorithm, workspace, bytes, beta, 2);
}
