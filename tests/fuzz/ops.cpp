// kiln_fuzz_ops [--seconds S | --steps K] [--seed N] [--device D]: random programs of tensor ops,
// run on the cpu and on the reference backend (or another device) at once. The seed is a random one
// unless it is given.
//
// A pool of tensors grows and shrinks; each step takes some of them (views, broadcast, strided,
// empty, of any dtype), applies a random op with random arguments, often wrong ones, and compares:
// the same error, or the same shape, dtype and values; after a write in place every tensor of the
// pool is compared, since views share memory. Run it under AddressSanitizer.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>

#include "kiln/core/accelerator.h"
#include "kiln/kiln.h"
#include "kiln/tensor/index/advanced_index.h"
#include "tests/ops/case.h"

namespace kiln::fuzz {
namespace {

using ops::Tensors;

// What the cpu is compared with.
Device& other_device() {
  static Device device(kReference);
  return device;
}
// Whether an op returns before it is known whether its values were good.
bool defers_errors() { return !(other_device() == Device(kReference)); }

// The same tensor on both.
struct Pair {
  Tensor cpu;
  Tensor reference;
};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // In [0, n).
  int64_t below(int64_t n) {
    return n <= 0 ? 0 : static_cast<int64_t>(engine_() % static_cast<uint64_t>(n));
  }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T, size_t N>
  const T& pick(const T (&list)[N]) {
    return list[below(N)];
  }

 private:
  std::mt19937_64 engine_;
};

constexpr DType kTypes[] = {f32, f32, f64, f16, bf16, i64, i32, i16, i8, u8, bool_};

// An op takes the tensors that one backend has; everything random is fixed before.
using Op = std::function<Tensors(const Tensors&)>;
struct Step {
  std::string text;
  size_t arity = 1;
  bool in_place = false;  // writes into the first tensor
  Op run;
};

std::string text_of(const Tensor& x) {
  std::string out = to_string(x.dtype()) + to_string(x.shape());
  if (!x.is_contiguous()) out += "/" + to_string(x.stride());
  return out;
}

class Fuzzer {
 public:
  explicit Fuzzer(uint64_t seed) : random_(seed) {}

  // Returns "" or what differs.
  std::string step() {
    while (pool_.size() < 4 || (pool_.size() < 12 && random_.chance(15))) pool_.push_back(fresh());
    if (pool_.size() > 24) pool_.erase(pool_.begin() + random_.below(8));
    const Step step = random_step();
    Tensors on_cpu;
    Tensors on_reference;
    last_ = step.text + "(";
    for (size_t i = 0; i < step.arity; ++i) {
      const Pair& p = pool_[static_cast<size_t>(random_.below(static_cast<int64_t>(pool_.size())))];
      on_cpu.push_back(p.cpu);
      on_reference.push_back(p.reference);
      last_ += (i == 0 ? "" : ", ") + text_of(p.cpu);
    }
    last_ += ")";
    return step.in_place ? write(step, on_cpu, on_reference) : apply(step, on_cpu, on_reference);
  }

  const std::string& last() const { return last_; }
  int errors() const { return errors_; }
  const std::string& first_error() const { return first_error_; }

 private:
  struct Outcome {
    Tensors results;
    std::string error;
  };

  static Outcome outcome(const Step& step, const Tensors& x) {
    try {
      Tensors results = step.run(x);
      if (defers_errors()) wait();
      return {std::move(results), ""};
    } catch (const Error& error) {
      if (defers_errors()) forget_errors();
      return {{}, error.what()};
    }
  }

  void count_error(const std::string& error) {
    if (++errors_ == 1) first_error_ = error;
  }

  // For the device that keeps its errors.
  static void wait() {
    if (to_string(other_device()).starts_with("cuda")) {  // Device("cuda") throws where none is
      cuda::synchronize();
    } else {
      opencl::synchronize();
    }
  }

  // What an op that failed had already begun may have failed too.
  static void forget_errors() {
    try {
      wait();
    } catch (const Error&) {
    }
  }

  // The same error, but for the name of the device.
  static std::string same_error(const Outcome& a, const Outcome& b) {
    if (a.error.empty() == b.error.empty()) return "";
    return "cpu: " + (a.error.empty() ? "no error" : a.error) + "; " + to_string(other_device()) +
           ": " + (b.error.empty() ? "no error" : b.error);
  }

  std::string apply(const Step& step, const Tensors& on_cpu, const Tensors& on_reference) {
    const Outcome a = outcome(step, on_cpu);
    const Outcome b = outcome(step, on_reference);
    if (std::string wrong = same_error(a, b); !wrong.empty()) return wrong;
    if (!a.error.empty()) {
      count_error(a.error);
      return "";
    }
    if (std::string wrong = compare(a.results, b.results); !wrong.empty()) return wrong;
    for (size_t i = 0; i < a.results.size(); ++i) keep(a.results[i], b.results[i]);
    return "";
  }

  std::string write(const Step& step, const Tensors& on_cpu, const Tensors& on_reference) {
    const Outcome a = outcome(step, on_cpu);
    const Outcome b = outcome(step, on_reference);
    if (std::string wrong = same_error(a, b); !wrong.empty()) return wrong;
    if (!a.error.empty()) count_error(a.error);
    if (!a.error.empty() && defers_errors()) {  // the write may be older than what is known of it
      pool_.clear();
      return "";
    }
    // Also after an error: a write that fails must not have begun.
    std::vector<Pair> kept;
    for (const Pair& p : pool_) {
      if (std::string wrong = compare({p.cpu}, {p.reference}); !wrong.empty()) {
        return "after the write, " + text_of(p.cpu) + " of the pool: " + wrong;
      }
      if (tame(p.cpu)) kept.push_back(p);
    }
    pool_ = std::move(kept);
    for (const Pair& p : pool_) synchronize(p);
    return "";
  }

  static std::string compare(const Tensors& a, const Tensors& b) {
    Tensors on_host;
    for (const Tensor& x : b) on_host.push_back(x.to(Device(kCpu)));
    const DType dtype = a.empty() ? f32 : a[0].dtype();
    // Ten roundings: sums and products of up to a few hundred numbers.
    return ops::difference(a, on_host, 10 * ops::tolerance_of(dtype));
  }

  // Whether the next ops will not amplify roundings: finite and not large.
  static bool tame(const Tensor& x) {
    for (const double v : x.to_data().to_doubles()) {
      if (!(std::abs(v) < 1000)) return false;
    }
    return x.numel() <= 4096;
  }

  // The reference gets the cpu's roundings, so that they do not add up over steps.
  static void synchronize(const Pair& p) {
    if (!p.cpu.is_floating_point() || p.cpu.numel() == 0) return;
    Tensor written = p.reference;
    try {
      written.copy_(p.cpu.to(other_device()));
    } catch (const Error&) {
      // An expanded tensor cannot be written to; what it is a view of is in the pool, or nobody
      // else sees it.
    }
  }

  // Whether elements lie at the same places.
  static bool lie_alike(const Tensor& a, const Tensor& b) {
    const auto x = a.stride(), y = b.stride();
    for (int d = 0; d < a.dim(); ++d) {
      if (a.size(d) > 1 && x[d] != y[d]) return false;
    }
    return true;
  }

  // The reference backend's results are row-major where the cpu's lie as the operands do. Of what
  // lies otherwise contiguous() is a copy, and of the other it is the same tensor.
  static Tensor laid_like(const Tensor& cpu, const Tensor& reference) {
    const auto strides = cpu.stride();
    int64_t elements = 1;
    for (int d = 0; d < cpu.dim(); ++d) elements += (cpu.size(d) - 1) * strides[d];
    if (cpu.numel() == 0 || elements != cpu.numel() || lie_alike(cpu, reference)) return reference;
    std::vector<int64_t> order, places(static_cast<size_t>(cpu.dim()));  // dims as they lie
    for (int d = 0; d < cpu.dim(); ++d) order.push_back(d);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return strides[static_cast<int>(a)] > strides[static_cast<int>(b)];
    });
    for (size_t i = 0; i < order.size(); ++i) {
      places[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    }
    const Tensor turned = reference.permute(order);
    Tensor out = kiln::zeros(turned.shape(), {.dtype = cpu.dtype(), .device = reference.device()});
    out.copy_(turned);
    return out.permute(places);
  }

  void keep(const Tensor& cpu, const Tensor& reference) {
    if (!tame(cpu)) return;
    pool_.push_back({cpu, laid_like(cpu, reference)});
    synchronize(pool_.back());
  }

  Shape shape() {
    Shape out;
    const int64_t rank = random_.between(0, 4);
    for (int64_t i = 0; i < rank; ++i) {
      const int64_t kind = random_.below(20);
      out.push_back(kind == 0 ? 0 : kind < 5 ? 1 : kind < 19 ? random_.between(2, 5) : 17);
    }
    return out;
  }

  Pair fresh() {
    const DType dtype = random_.pick(kTypes);
    const Shape size = shape();
    TensorData data(size, f64);
    for (double& v : data.as_mutable<double>()) {
      v = static_cast<double>(random_.between(-24, 24)) / 8;
    }
    Tensor x = Tensor(data);
    x = dtype == bool_ ? x.gt(Scalar(0)) : dtype == u8 ? x.abs().to(dtype) : x.to(dtype);
    return {x, x.to(other_device())};
  }

  int64_t dim() { return random_.between(-4, 4); }
  Scalar number() {
    if (random_.chance(50)) return Scalar(random_.between(-3, 3));
    return Scalar(static_cast<double>(random_.between(-16, 16)) / 4);
  }

  Step random_step() {
    switch (random_.below(10)) {
      case 0:
      case 1:
        return view();
      case 2:
        return unary();
      case 3:
      case 4:
        return binary();
      case 5:
        return reduction();
      case 6:
      case 7:
        return in_place();
      case 8:
        return indexing();
      default:
        return other();
    }
  }

#define KILN_STEP(name, arity, expression)                                        \
  Step {                                                                          \
    name, arity, false, [=](const Tensors& x) { return ops::listed(expression); } \
  }

  Step view() {
    const int64_t a = dim();
    const int64_t b = dim();
    const int64_t n = random_.between(-6, 6);
    const int64_t m = random_.between(-6, 6);
    const int64_t s = random_.between(1, 3);
    switch (random_.below(10)) {
      case 0:
        return KILN_STEP("transpose", 1, x[0].transpose(a, b));
      case 1:
        return KILN_STEP("select", 1, x[0].select(a, n));
      case 2:
        return KILN_STEP("slice", 1, x[0].slice(a, n, m, s));
      case 3:
        return KILN_STEP("unsqueeze", 1, x[0].unsqueeze(a));
      case 4:
        return KILN_STEP("squeeze", 1, x[0].squeeze());
      case 5:
        return KILN_STEP("flatten", 1, x[0].flatten(a, b));
      case 6:
        return KILN_STEP("flip", 1, x[0].flip({a}));
      case 7:
        return KILN_STEP("narrow", 1, x[0].narrow(a, n, s));
      case 8:
        return KILN_STEP("expand", 1, x[0].unsqueeze(0).expand(widened(x[0].shape(), s)));
      default:
        return KILN_STEP("reshape", 1, x[0].reshape({-1, s}));
    }
  }

  static Shape widened(const Shape& shape, int64_t n) {
    Shape out{n};
    for (const int64_t size : shape) out.push_back(size);
    return out;
  }

  Step unary() {
    switch (random_.below(12)) {
      case 0:
        return KILN_STEP("neg", 1, x[0].neg());
      case 1:
        return KILN_STEP("abs", 1, x[0].abs());
      case 2:
        return KILN_STEP("exp", 1, x[0].exp());
      case 3:
        return KILN_STEP("tanh", 1, x[0].tanh());
      case 4:
        return KILN_STEP("sqrt", 1, x[0].abs().sqrt());
      case 5:
        return KILN_STEP("relu", 1, x[0].relu());
      case 6:
        return KILN_STEP("floor", 1, x[0].floor());
      case 7:
        return KILN_STEP("logical_not", 1, x[0].logical_not());
      case 8:
        return KILN_STEP("clone", 1, x[0].clone());
      case 9:
        return KILN_STEP("sigmoid", 1, x[0].sigmoid());
      case 10: {
        const DType to = random_.pick(kTypes);
        return KILN_STEP("to", 1, x[0].to(to));
      }
      default:
        return KILN_STEP("gelu", 1, x[0].gelu());
    }
  }

  Step binary() {
    const Scalar s = number();
    switch (random_.below(12)) {
      case 0:
        return KILN_STEP("add", 2, x[0] + x[1]);
      case 1:
        return KILN_STEP("sub", 2, x[0] - x[1]);
      case 2:
        return KILN_STEP("mul", 2, x[0] * x[1]);
      case 3:
        return KILN_STEP("div", 2, x[0] / x[1].abs().add(Scalar(1)));
      case 4:
        return KILN_STEP("maximum", 2, x[0].maximum(x[1]));
      case 5:
        return KILN_STEP("eq", 2, x[0].eq(x[1]));
      case 6:
        return KILN_STEP("lt", 2, x[0].lt(x[1]));
      case 7:
        return KILN_STEP("where", 3, where(x[0].gt(Scalar(0)), x[1], x[2]));
      case 8:
        return KILN_STEP("add scalar", 1, x[0] + s);
      case 9:
        return KILN_STEP("mul scalar", 1, x[0] * s);
      case 10:
        return KILN_STEP("matmul", 2, x[0].matmul(x[1]));
      default:
        return KILN_STEP("bitwise_and", 2, x[0].bitwise_and(x[1]));
    }
  }

  Step reduction() {
    const int64_t a = dim();
    const bool keep = random_.chance(50);
    switch (random_.below(12)) {
      case 0:
        return KILN_STEP("sum", 1, x[0].sum(a, keep));
      case 1:
        return KILN_STEP("mean", 1, x[0].mean(a, keep));
      case 2:
        return KILN_STEP("amax", 1, x[0].amax(a, keep));
      case 3:
        return KILN_STEP("sum of all", 1, x[0].sum());
      case 4:
        return KILN_STEP("max", 1, x[0].max(a, keep));
      case 5:
        return KILN_STEP("argmin", 1, x[0].argmin(a, keep));
      case 6:
        return KILN_STEP("any", 1, x[0].any(a, keep));
      case 7:
        return KILN_STEP("cumsum", 1, x[0].cumsum(a));
      case 8:
        return KILN_STEP("softmax", 1, x[0].softmax(a));
      case 9:
        return KILN_STEP("sort", 1, x[0].sort(a, keep));
      case 10:
        return KILN_STEP("var", 1, x[0].var(a, 1, keep));
      default:
        return KILN_STEP("prod", 1, x[0].prod(a, keep));
    }
  }

#define KILN_WRITE(name, arity, expression)    \
  Step {                                       \
    name, arity, true, [=](const Tensors& x) { \
      Tensor y = x[0];                         \
      y.expression;                            \
      return Tensors{};                        \
    }                                          \
  }

  Step in_place() {
    const Scalar s = number();
    switch (random_.below(9)) {
      case 0:
        return KILN_WRITE("add_", 2, add_(x[1]));
      case 1:
        return KILN_WRITE("mul_", 2, mul_(x[1]));
      case 2:
        return KILN_WRITE("copy_", 2, copy_(x[1]));
      case 3:
        return KILN_WRITE("fill_", 1, fill_(s));
      case 4:
        return KILN_WRITE("zero_", 1, zero_());
      case 5:
        return KILN_WRITE("add_ scalar", 1, add_(s));
      case 6:
        return KILN_WRITE("masked_fill_", 2, masked_fill_(x[1].gt(Scalar(0)), s));
      case 7:
        return KILN_WRITE("sub_ of itself turned", 1,
                          sub_(x[0].dim() > 1 ? x[0].transpose(0, 1) : x[0]));
      default:
        return KILN_WRITE("tanh_", 1, tanh_());
    }
  }
#undef KILN_WRITE

  Step indexing() {
    const int64_t a = dim();
    switch (random_.below(6)) {
      case 0:
        return KILN_STEP("index_select", 2, x[0].index_select(a, small(x[1]).flatten()));
      case 1:
        return KILN_STEP("gather", 2, x[0].gather(a, small(x[1])));
      case 2:
        return KILN_STEP("scatter_add", 3, x[0].scatter_add(a, small(x[1]), x[2]));
      case 3:
        return KILN_STEP("masked_select", 2, masked_select(x[0], x[1].gt(Scalar(0))));
      case 4:
        return KILN_STEP("nonzero", 1, nonzero(x[0]));
      default:
        return KILN_STEP("index", 2, kiln::index(x[0], std::vector<IndexEntry>{small(x[1])}));
    }
  }
  // Indices, mostly legal ones.
  static Tensor small(const Tensor& x) { return x.to(i64).abs().clamp(0, 2); }

  Step other() {
    const int64_t a = dim();
    switch (random_.below(4)) {
      case 0:
        return KILN_STEP("cat", 2, cat({x[0], x[1]}, a));
      case 1:
        return KILN_STEP("stack", 2, stack({x[0], x[1]}, a));
      case 2:
        return KILN_STEP("chunk", 1, x[0].chunk(3, a));
      default:
        return KILN_STEP("contiguous", 1, x[0].contiguous());
    }
  }
#undef KILN_STEP

  Random random_;
  std::vector<Pair> pool_;
  std::string last_;
  int errors_ = 0;
  std::string first_error_;
};

int run(double seconds, uint64_t seed, int64_t steps) {
  std::printf("fuzz: seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  const auto start = std::chrono::steady_clock::now();
  Fuzzer fuzzer(seed);
  int64_t done = 0;
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (; steps > 0 ? done < steps : elapsed() < seconds; ++done) {
    const std::string wrong = fuzzer.step();
    if (wrong.empty()) continue;
    std::printf("fuzz: step %lld of seed %llu: %s\n  %s\n", static_cast<long long>(done),
                static_cast<unsigned long long>(seed), fuzzer.last().c_str(), wrong.c_str());
    return 1;
  }
  // Hardly more than a third are: where more are, the steps tried nothing.
  if (done >= 100 && fuzzer.errors() > done / 10 * 7) {
    std::printf("fuzz: %d of %lld steps were errors on both backends; the first: %s\n",
                fuzzer.errors(), static_cast<long long>(done), fuzzer.first_error().c_str());
    return 1;
  }
  std::printf("fuzz: %lld steps in %.1f s, %d of them errors on both backends; no difference\n",
              static_cast<long long>(done), elapsed(), fuzzer.errors());
  return 0;
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) {
  double seconds = 5;
  uint64_t seed = std::random_device()();
  int64_t steps = 0;
  std::string device;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--seed") == 0) seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--steps") == 0) steps = std::atoll(argv[i + 1]);
    if (std::strcmp(argv[i], "--device") == 0) device = argv[i + 1];
  }
  try {
    if (device.starts_with("opencl") && !kiln::opencl::is_available() &&
        std::getenv("KILN_CI") == nullptr) {
      std::printf("fuzz: skipped, no device: %s\n", kiln::opencl::absence().c_str());
      return 77;
    }
    if (!device.empty()) kiln::fuzz::other_device() = kiln::Device(device);
    return kiln::fuzz::run(seconds, seed, steps);
  } catch (const std::exception& error) {
    std::printf("fuzz: an exception that is no kiln::Error from an op: %s\n", error.what());
    return 1;
  }
}
