#include "bench/peaks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kiln::bench {
namespace {

using Clock = std::chrono::steady_clock;

// The sizes of the arrays that are added.
constexpr int64_t kMemoryFloats = int64_t{16} << 20;
constexpr int64_t kMediumFloats = (int64_t{32} << 20) / 12 + 64;
constexpr int64_t kCachedFloats = int64_t{1} << 20;
constexpr double kBytesOfAdd = 3 * sizeof(float);
constexpr double kBytesOfCopy = 2 * sizeof(float);

// The seconds from the moment all threads stand ready until the last has finished f(thread).
double time_on_threads(int threads, const std::function<void(int)>& f) {
  std::atomic<int> waiting{threads};
  std::vector<Clock::time_point> started(static_cast<size_t>(threads));
  std::vector<Clock::time_point> finished(static_cast<size_t>(threads));
  const auto work = [&](int thread) {
    --waiting;
    while (waiting != 0) {
    }
    started[static_cast<size_t>(thread)] = Clock::now();
    f(thread);
    finished[static_cast<size_t>(thread)] = Clock::now();
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
  const auto span = *std::max_element(finished.begin(), finished.end()) -
                    *std::min_element(started.begin(), started.end());
  return std::chrono::duration<double>(span).count();
}

// ---- The loops, once for each width of vector that the processor may have
// ------------------------

// Enough independent sums to hide the latency of one multiply-add behind the others, and few enough
// for sixteen registers.
constexpr int kSums = 12;

// Vectors that may lie anywhere, over memory that is known as floats.
typedef float Vector16 __attribute__((vector_size(16), aligned(4), may_alias));
typedef float Vector32 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float Vector64 __attribute__((vector_size(64), aligned(4), may_alias));

template <class Vector>
[[gnu::always_inline]] inline float multiply_add(int64_t steps) {
  Vector sums[kSums];
  // None starts at 1, which the loop maps to itself: the compiler sees that and takes it out.
  for (int i = 0; i < kSums; ++i) sums[i] = Vector{} + static_cast<float>(2 + i);
  const Vector factor = Vector{} + 0.999f;
  const Vector term = Vector{} + 0.001f;
  for (int64_t step = 0; step < steps; ++step) {
    for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * factor + term;
  }
  Vector total = sums[0];
  for (int i = 1; i < kSums; ++i) total += sums[i];
  return total[0];
}

template <class Vector>
[[gnu::always_inline]] inline void add_arrays(const float* x, const float* y, float* z, int64_t n) {
  constexpr int64_t kLanes = sizeof(Vector) / sizeof(float);
  for (int64_t i = 0; i < n; i += kLanes) {
    *reinterpret_cast<Vector*>(z + i) =
        *reinterpret_cast<const Vector*>(x + i) + *reinterpret_cast<const Vector*>(y + i);
  }
}

struct Loops {
  int lanes;
  float (*multiply_add)(int64_t steps);
  void (*add)(const float* x, const float* y, float* z, int64_t n);
};

float multiply_add_16(int64_t steps) { return multiply_add<Vector16>(steps); }
void add_16(const float* x, const float* y, float* z, int64_t n) {
  add_arrays<Vector16>(x, y, z, n);
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] float multiply_add_32(int64_t steps) {
  return multiply_add<Vector32>(steps);
}
[[gnu::target("avx2,fma")]] void add_32(const float* x, const float* y, float* z, int64_t n) {
  add_arrays<Vector32>(x, y, z, n);
}
[[gnu::target("avx512f")]] float multiply_add_64(int64_t steps) {
  return multiply_add<Vector64>(steps);
}
[[gnu::target("avx512f")]] void add_64(const float* x, const float* y, float* z, int64_t n) {
  add_arrays<Vector64>(x, y, z, n);
}
#endif

Loops widest_loops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {16, multiply_add_64, add_64};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {8, multiply_add_32, add_32};
  }
#endif
  return {4, multiply_add_16, add_16};
}

void add_streaming(const float* x, const float* y, float* z, int64_t n) {
#if defined(__x86_64__)
  for (int64_t i = 0; i < n; i += 4) {
    _mm_stream_ps(z + i, _mm_add_ps(_mm_load_ps(x + i), _mm_load_ps(y + i)));
  }
  _mm_sfence();
#else
  add_16(x, y, z, n);
#endif
}

// ---- What is measured with them
// ------------------------------------------------------------------

// How often a peak is measured: often enough to meet an undisturbed moment, but not for minutes on
// a machine that has none.
struct PeakEffort {
  int repeats;
  double seconds;
};

// The largest value of f().
double best_of(const PeakEffort& effort, const std::function<double()>& f) {
  const auto start = Clock::now();
  double best = 0;
  for (int i = 0; i < effort.repeats; ++i) {
    best = std::max(best, f());
    if (std::chrono::duration<double>(Clock::now() - start).count() > effort.seconds) break;
  }
  return best;
}

double multiply_add_rate(const Loops& loops, int threads, const PeakEffort& effort) {
  // A few milliseconds: short enough to fit between two interruptions, long against the clock.
  constexpr int64_t kSteps = 1 << 21;
  std::atomic<float> sink{0};
  return best_of(effort, [&] {
    const double seconds =
        time_on_threads(threads, [&](int) { sink = loops.multiply_add(kSteps); });
    return 2.0 * kSums * loops.lanes * kSteps * threads / seconds;
  });
}

struct Free {
  void operator()(float* array) const { std::free(array); }
};
using Array = std::unique_ptr<float, Free>;

Array make_array() {
  constexpr size_t kBytes = kMemoryFloats * sizeof(float);
  Array array(static_cast<float*>(std::aligned_alloc(64, kBytes)));
  if (!array) throw std::bad_alloc();
  std::memset(array.get(), 0, kBytes);
  return array;
}

// The best rate of pass(begin, n), which moves `bytes` for each element of [0, n).
double bandwidth_of(int threads, const PeakEffort& effort, int64_t n, double bytes,
                    const std::function<void(int64_t, int64_t)>& pass) {
  const int64_t part = n / threads / 64 * 64;
  // Passes over a small array follow one another within one measurement.
  const int64_t passes = std::max<int64_t>(1, kMemoryFloats / n);
  return best_of(effort, [&] {
    const double seconds = time_on_threads(threads, [&](int thread) {
      for (int64_t k = 0; k < passes; ++k) pass(thread * part, part);
    });
    return bytes * static_cast<double>(part * threads * passes) / seconds;
  });
}

}  // namespace

// What the system says about the size of its cache is often wrong, in virtual machines above all;
// so a row is judged by the smallest measured size that holds its data.
double Peaks::bandwidth(double bytes) const {
  if (bytes <= kBytesOfAdd * kCachedFloats) return add_cached;
  const double memory = std::max({copy, add, add_streaming});
  if (bytes <= kBytesOfAdd * kMediumFloats) return std::max(memory, add_medium);
  return memory;
}

Peaks measure_peaks(int threads, bool quick) {
  const PeakEffort effort = quick ? PeakEffort{5, 0.1} : PeakEffort{40, 0.5};
  const Loops loops = widest_loops();
  Peaks peaks;
  peaks.threads = threads;
  peaks.flops_one = multiply_add_rate(loops, 1, effort);
  peaks.flops = threads == 1 ? peaks.flops_one : multiply_add_rate(loops, threads, effort);

  const Array x_array = make_array(), y_array = make_array(), z_array = make_array();
  const float* x = x_array.get();
  const float* y = y_array.get();
  float* z = z_array.get();
  const auto copy = [=](int64_t begin, int64_t n) {
    std::memcpy(z + begin, x + begin, static_cast<size_t>(n) * sizeof(float));
  };
  const auto add = [=](int64_t begin, int64_t n) { loops.add(x + begin, y + begin, z + begin, n); };
  const auto streaming = [=](int64_t begin, int64_t n) {
    add_streaming(x + begin, y + begin, z + begin, n);
  };
  peaks.copy = bandwidth_of(threads, effort, kMemoryFloats, kBytesOfCopy, copy);
  peaks.add = bandwidth_of(threads, effort, kMemoryFloats, kBytesOfAdd, add);
  peaks.add_streaming = bandwidth_of(threads, effort, kMemoryFloats, kBytesOfAdd, streaming);
  peaks.add_medium = bandwidth_of(threads, effort, kMediumFloats, kBytesOfAdd, add);
  peaks.add_cached = bandwidth_of(threads, effort, kCachedFloats, kBytesOfAdd, add);
  return peaks;
}

}  // namespace kiln::bench
