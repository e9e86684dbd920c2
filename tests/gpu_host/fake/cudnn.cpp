// A libcudnn.so.9 for tests: convolutions as NVIDIA's documentation has them, computed one number
// at a time when their turn in the stream comes. It offers an engine whose results differ from run
// to run before one whose results do not, and ends the process when the first is used.
#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "tests/gpu_host/fake/fake_library.h"

using namespace kiln::fake_cuda;

namespace {

struct Handle {
  void* stream = nullptr;
};
// Of images [n, c, h, w], or of filters [k, c, h, w], with a step for each dim.
struct Tensor {
  Real type = Real::f32;
  int64_t id = 0;
  int64_t size[4] = {};
  int64_t step[4] = {};
  int64_t numel() const { return size[0] * size[1] * size[2] * size[3]; }
  int64_t at(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return n * step[0] + c * step[1] + h * step[2] + w * step[3];
  }
  bool is_last() const { return step[1] == 1 && size[1] > 1 && size[2] * size[3] > 1; }
};
struct Convolution {
  int64_t padding[2] = {};
  int64_t stride[2] = {1, 1};
  int64_t dilation[2] = {1, 1};
  int64_t groups = 1;
};
// A descriptor of NVIDIA's graphs: what was set, by the numbers of its attributes.
struct Descriptor {
  int kind = 0;
  bool finalized = false;
  std::map<int, std::vector<std::byte>> bytes;
  std::map<int, std::vector<const Descriptor*>> others;
  int engine = 0;                     // of an engine or a configuration
  const Descriptor* graph = nullptr;  // of a configuration or a plan
};
enum Kind {
  kConvolution = 1,
  kEngine,
  kConfig,
  kHeuristics,
  kPlan,
  kForward = 10,
  kFilter,
  kData,
  kGraph = 15,
  kPack,
  kTensor
};
constexpr size_t kWorkspace = 1024;
int convolutions = 0;
int channels_last = 0;  // of them

bool fits(const Tensor& x, const Tensor& w, const Tensor& y, const Convolution& c) {
  bool fine = x.type == w.type && x.type == y.type && x.size[0] == y.size[0] &&
              x.size[1] == w.size[1] * c.groups && y.size[1] == w.size[0] &&
              w.size[0] % c.groups == 0;
  for (int d = 0; d < 2; ++d) {
    const int64_t reach = c.dilation[d] * (w.size[2 + d] - 1) + 1;
    fine = fine && y.size[2 + d] == (x.size[2 + d] + 2 * c.padding[d] - reach) / c.stride[d] + 1;
  }
  return fine;
}

// f(place in x, place in w, place in y) for every product that a convolution adds.
template <class F>
void each_product(const Tensor& x, const Tensor& w, const Tensor& y, const Convolution& c, F&& f) {
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

// Computes one of the three into `out`, when its turn comes.
int run(Handle* handle, const Tensor& x, const void* xs, const Tensor& w, const void* ws,
        const Tensor& y, const void* ys, const Convolution& c, int engine, const void* workspace,
        int part) {
  const Tensor* all[] = {&x, &w, &y};
  const void* memory[] = {xs, ws, ys};
  if (engine != 1) library_violation("cudnn: an engine whose results differ from run to run");
  for (int k = 0; k < 3; ++k) {
    if (!kiln_fake_cuda_holds(memory[k],
                              static_cast<size_t>(all[k]->numel()) * size_of(all[k]->type))) {
      library_violation("cudnn: an operand is not all in a block");
    }
  }
  if (!kiln_fake_cuda_holds(workspace, kWorkspace)) {
    library_violation("cudnn: the workspace is too small, or no block");
  }
  ++convolutions;
  channels_last += x.is_last() ? 1 : 0;
  kiln_fake_cuda_enqueue(handle->stream, [=] {
    const Tensor& out = part == 0 ? y : part == 1 ? x : w;
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

namespace {

template <class T>
bool read(const Descriptor& d, int attribute, T* to, size_t count) {
  const auto found = d.bytes.find(attribute);
  if (found == d.bytes.end() || found->second.size() != count * sizeof(T)) return false;
  std::memcpy(to, found->second.data(), count * sizeof(T));
  return true;
}
const Descriptor* other(const Descriptor& d, int attribute) {
  const auto found = d.others.find(attribute);
  return found == d.others.end() || found->second.size() != 1 ? nullptr : found->second[0];
}

bool read_tensor(const Descriptor* d, Tensor* to) {
  int type = -1;
  int64_t alignment = 0;
  if (d == nullptr || d->kind != kTensor || !read(*d, 901, &type, 1) ||
      !read(*d, 902, to->size, 4) || !read(*d, 903, to->step, 4) || !read(*d, 906, &to->id, 1) ||
      !read(*d, 900, &alignment, 1)) {
    return false;
  }
  for (int k = 0; k < 4; ++k) {
    if (to->size[k] < 1 || to->step[k] < 1) return false;
  }
  switch (type) {
    case 0:
      to->type = Real::f32;
      break;
    case 1:
      to->type = Real::f64;
      break;
    case 2:
      to->type = Real::f16;
      break;
    case 9:
      to->type = Real::bf16;
      break;
    default:
      return false;
  }
  return alignment >= 1 && alignment % static_cast<int64_t>(size_of(to->type)) == 0;
}

struct Whole {
  Tensor x, w, y;
  Convolution convolution;
  int part = 0;
};
// The convolution that an operation describes; false where it is none.
bool read_operation(const Descriptor* d, Whole* to) {
  if (d == nullptr || d->kind < kForward || d->kind > kData) return false;
  const int first = d->kind == kForward ? 700 : d->kind == kData ? 706 : 712;
  to->part = d->kind == kForward ? 0 : d->kind == kData ? 1 : 2;
  const Descriptor* c = other(*d, first + 2);
  if (c == nullptr || c->kind != kConvolution || !c->finalized ||
      !read_tensor(other(*d, first + 3), &to->w) || !read_tensor(other(*d, first + 4), &to->x) ||
      !read_tensor(other(*d, first + 5), &to->y)) {
    return false;
  }
  int mode = 0, compute = -1;
  int64_t dims = 0, behind[2] = {};
  Convolution& v = to->convolution;
  if (!read(*c, 101, &mode, 1) || !read(*c, 100, &compute, 1) || !read(*c, 106, &dims, 1) ||
      !read(*c, 102, v.dilation, 2) || !read(*c, 103, v.stride, 2) || !read(*c, 104, behind, 2) ||
      !read(*c, 105, v.padding, 2)) {
    return false;
  }
  if (mode != 1 || dims != 2 || behind[0] != v.padding[0] || behind[1] != v.padding[1])
    return false;
  const bool wide = to->x.type == Real::f64;
  double factors[2];
  for (int i = 0; i < 2; ++i) {
    float narrow = 0;
    if (wide ? !read(*d, first + i, factors + i, 1) : !read(*d, first + i, &narrow, 1))
      return false;
    if (!wide) factors[i] = narrow;
  }
  if (factors[0] != 1.0 || factors[1] != 0.0 || compute != (wide ? 1 : 0)) return false;
  v.groups = to->x.size[1] / to->w.size[1];
  return fits(to->x, to->w, to->y, v);
}

}  // namespace

FAKE cudnnCreate(Handle** to) {
  *to = new Handle;
  return 0;
}
FAKE cudnnSetStream(Handle* handle, void* stream) {
  handle->stream = stream;
  return 0;
}
FAKE cudnnBackendCreateDescriptor(int kind, Descriptor** to) {
  *to = new Descriptor;
  (*to)->kind = kind;
  return 0;
}
FAKE cudnnBackendDestroyDescriptor(Descriptor* d) {
  delete d;
  return 0;
}
FAKE cudnnBackendSetAttribute(Descriptor* d, int attribute, int type, int64_t count,
                              const void* values) {
  static constexpr size_t kSizes[] = {8, 4, 1, 8, 4, 8, 8, 4, 4, 4, 4, 4};
  if (d->finalized || count < 1) return 3;
  if (type == 15) {
    const auto* list = static_cast<Descriptor* const*>(values);
    for (int64_t i = 0; i < count; ++i) {
      if (!list[i]->finalized) return 3;
    }
    d->others[attribute].assign(list, list + count);
    return 0;
  }
  if (type < 0 || type > 11) return 3;
  const auto* bytes = static_cast<const std::byte*>(values);
  d->bytes[attribute].assign(bytes, bytes + static_cast<size_t>(count) * kSizes[type]);
  return 0;
}
FAKE cudnnBackendFinalize(Descriptor* d) {
  if (d->finalized) return 3;
  Tensor tensor;
  Whole whole;
  Handle* handle = nullptr;
  int mode = -1;
  bool fine = true;
  switch (d->kind) {
    case kTensor:
      fine = read_tensor(d, &tensor);
      break;
    case kForward:
    case kFilter:
    case kData:
      fine = read_operation(d, &whole);
      break;
    case kGraph:
      fine = read(*d, 800, &handle, 1) && read_operation(other(*d, 801), &whole);
      break;
    case kHeuristics:
      fine = other(*d, 201) != nullptr && read(*d, 200, &mode, 1) && (mode == 2 || mode == 3);
      break;
    case kPlan: {
      const Descriptor* config = other(*d, 401);
      fine = read(*d, 400, &handle, 1) && config != nullptr && config->graph != nullptr;
      if (!fine) break;
      d->graph = config->graph;
      d->engine = config->engine;
      break;
    }
    default:
      break;
  }
  d->finalized = fine;
  return fine ? 0 : 3;
}
FAKE cudnnBackendGetAttribute(Descriptor* d, int attribute, int type, int64_t wanted,
                              int64_t* count, void* to) {
  if (!d->finalized && d->graph == nullptr) return 3;
  if (d->kind == kHeuristics && attribute == 202 && type == 15) {
    // The first one's results differ from run to run.
    auto* list = static_cast<Descriptor**>(to);
    *count = std::min<int64_t>(wanted, 2);
    for (int64_t i = 0; i < *count; ++i) {
      list[i]->graph = other(*d, 201);
      list[i]->engine = static_cast<int>(i);
      list[i]->finalized = true;
    }
    return 0;
  }
  if (d->kind == kConfig && attribute == 300 && type == 15 && wanted == 1) {
    Descriptor* engine = *static_cast<Descriptor**>(to);
    engine->graph = d->graph;
    engine->engine = d->engine;
    *count = 1;
    return 0;
  }
  if (d->kind == kEngine && attribute == 1303 && type == 11 && wanted >= 1) {
    constexpr int kNondeterministic = 4;
    *count = d->engine == 0 ? 1 : 0;
    if (d->engine == 0) *static_cast<int*>(to) = kNondeterministic;
    return 0;
  }
  if (d->kind == kPlan && attribute == 402 && type == 3 && wanted == 1) {
    *static_cast<int64_t*>(to) = kWorkspace;
    *count = 1;
    return 0;
  }
  return 3;
}
FAKE cudnnBackendExecute(Handle* handle, Descriptor* plan, Descriptor* pack) {
  if (plan->kind != kPlan || !plan->finalized || pack->kind != kPack || !pack->finalized) return 3;
  int64_t ids[3] = {};
  const void* pointers[3] = {};
  const void* workspace = nullptr;
  Whole v;
  if (!read(*pack, 1000, ids, 3) || !read(*pack, 1001, pointers, 3) ||
      !read(*pack, 1003, &workspace, 1) || !read_operation(other(*plan->graph, 801), &v)) {
    return 3;
  }
  const auto memory = [&](const Tensor& t) -> const void* {
    for (int k = 0; k < 3; ++k) {
      if (ids[k] == t.id) return pointers[k];
    }
    return nullptr;
  };
  return run(handle, v.x, memory(v.x), v.w, memory(v.w), v.y, memory(v.y), v.convolution,
             plan->engine, workspace, v.part);
}
