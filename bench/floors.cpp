#include "bench/floors.h"

#include <algorithm>
#include <unordered_map>

#include <dlfcn.h>

#include "bench/inputs.h"
#include "bench/tensors.h"
#include "kiln/core/parallel.h"

#if KILN_BENCH_ONEDNN
#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace kiln::bench {
namespace {

std::vector<float> numbers(int64_t n, uint64_t seed) {
  return uniform_values(static_cast<size_t>(n), seed);
}

// OpenBLAS is loaded while running and kept to itself: linked, its functions would take the place
// of the peer's.
using Sgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                       const float* a, int lda, const float* b, int ldb, float beta, float* c,
                       int ldc);
Sgemm openblas_sgemm() {
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  if (void* set = dlsym(library, "openblas_set_num_threads")) {
    reinterpret_cast<void (*)(int)>(set)(num_threads());
  }
  return reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
}

std::unique_ptr<Workload> openblas_matmul(int64_t n, Sgemm sgemm) {
  struct State {
    std::vector<float> a, b, c;
  };
  auto state = std::make_shared<State>(
      State{numbers(n * n, 1), numbers(n * n, 2), std::vector<float>(static_cast<size_t>(n * n))});
  return make_workload(
      [=] {
        constexpr int kRowMajor = 101, kNoTrans = 111;
        const int size = static_cast<int>(n);
        sgemm(kRowMajor, kNoTrans, kNoTrans, size, size, size, 1.0f, state->a.data(), size,
              state->b.data(), size, 0.0f, state->c.data(), size);
        return state->c.data();
      },
      [=](auto& step) { return sample_values(step(), static_cast<size_t>(n * n)); });
}

#if KILN_BENCH_ONEDNN

using Tag = dnnl::memory::format_tag;

dnnl::memory::desc floats(const Shape& shape, Tag tag) {
  return {dnnl::memory::dims(shape.begin(), shape.end()), dnnl::memory::data_type::f32, tag};
}

dnnl::memory filled(const Shape& shape, Tag tag, uint64_t seed, const dnnl::engine& engine) {
  dnnl::memory memory(floats(shape, tag), engine);
  const std::vector<float> values = numbers(shape.numel(), seed);
  std::copy(values.begin(), values.end(), static_cast<float*>(memory.get_data_handle()));
  return memory;
}

struct OneDnn {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;

  void run() {
    primitive.execute(stream, arguments);
    stream.wait();
  }
  // The memory, in the layout that the primitive wants.
  dnnl::memory reordered(dnnl::memory from, const dnnl::memory::desc& wanted) {
    if (from.get_desc() == wanted) return from;
    dnnl::memory to(wanted, engine);
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
    return to;
  }
};

std::unique_ptr<Workload> onednn_workload(std::shared_ptr<OneDnn> state, int64_t numel, Tag plain,
                                          Shape shape) {
  return make_workload([=] { state->run(); },
                       [=](auto& step) {
                         step();
                         dnnl::memory out = state->reordered(state->arguments.at(DNNL_ARG_DST),
                                                             floats(shape, plain));
                         return sample_values(static_cast<float*>(out.get_data_handle()),
                                              static_cast<size_t>(numel));
                       });
}

std::unique_ptr<Workload> onednn_matmul(int64_t n) {
  auto s = std::make_shared<OneDnn>();
  const Shape shape{n, n};
  const auto desc = floats(shape, Tag::ab);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc chosen(s->engine, desc, desc, desc);
#else
  const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(desc, desc, desc), s->engine);
#endif
  s->primitive = dnnl::matmul(chosen);
  s->arguments = {{DNNL_ARG_SRC, filled(shape, Tag::ab, 1, s->engine)},
                  {DNNL_ARG_WEIGHTS, filled(shape, Tag::ab, 2, s->engine)},
                  {DNNL_ARG_DST, dnnl::memory(desc, s->engine)}};
  return onednn_workload(s, n * n, Tag::ab, shape);
}

std::unique_ptr<Workload> onednn_conv2d(const Shape& x, const Shape& weight, const ConvOptions& o) {
  auto s = std::make_shared<OneDnn>();
  Shape out{x[0], weight[0], 0, 0};
  for (int i = 0; i < 2; ++i) {
    const auto k = static_cast<size_t>(i);
    out[2 + i] =
        conv_output_size(x[2 + i], weight[2 + i], o.stride[k], o.padding[k], o.dilation[k]);
  }
  const auto pair = [](const IntPair& p, int64_t less = 0) {
    return dnnl::memory::dims{p[0] - less, p[1] - less};
  };
  const auto any_x = floats(x, Tag::any), any_w = floats(weight, Tag::any);
  const auto any_y = floats(out, Tag::any);
  constexpr auto kKind = dnnl::prop_kind::forward_inference;
  constexpr auto kHow = dnnl::algorithm::convolution_auto;
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::convolution_forward::primitive_desc chosen(s->engine, kKind, kHow, any_x, any_w,
                                                         any_y, pair(o.stride), pair(o.dilation, 1),
                                                         pair(o.padding), pair(o.padding));
#else
  const dnnl::convolution_forward::primitive_desc chosen(
      dnnl::convolution_forward::desc(kKind, kHow, any_x, any_w, any_y, pair(o.stride),
                                      pair(o.dilation, 1), pair(o.padding), pair(o.padding)),
      s->engine);
#endif
  s->primitive = dnnl::convolution_forward(chosen);
  s->arguments = {
      {DNNL_ARG_SRC, s->reordered(filled(x, Tag::nchw, 1, s->engine), chosen.src_desc())},
      {DNNL_ARG_WEIGHTS,
       s->reordered(filled(weight, Tag::oihw, 2, s->engine), chosen.weights_desc())},
      {DNNL_ARG_DST, dnnl::memory(chosen.dst_desc(), s->engine)}};
  return onednn_workload(s, out.numel(), Tag::nchw, out);
}

#endif

}  // namespace

std::vector<Floor> matmul_floors(int64_t n) {
  std::vector<Floor> floors;
#if KILN_BENCH_ONEDNN
  floors.push_back({"oneDNN", [=] { return onednn_matmul(n); }});
#endif
  static const Sgemm sgemm = openblas_sgemm();
  if (sgemm != nullptr) floors.push_back({"OpenBLAS", [=] { return openblas_matmul(n, sgemm); }});
  return floors;
}

std::vector<Floor> conv2d_floors(const Shape& x, const Shape& weight, const ConvOptions& options) {
  std::vector<Floor> floors;
#if KILN_BENCH_ONEDNN
  floors.push_back({"oneDNN", [=] { return onednn_conv2d(x, weight, options); }});
#else
  (void)x, (void)weight, (void)options;
#endif
  return floors;
}

}  // namespace kiln::bench
