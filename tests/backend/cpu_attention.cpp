// Attention on the Cpu backend: the kernels of every instruction set against the reference, bits at
// one thread and at several, and memory.
#include <cstring>

#include <doctest/doctest.h>

#include "kiln/backend/conformance/conformance.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/core/allocator.h"
#include "kiln/core/parallel.h"
#include "tests/backend/neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

std::vector<float> floats_of(const HostHandle& x) {
  const TensorData data = Cpu::float_into_data(Cpu::float_cast(x, DType::f32));
  const auto values = data.as<float>();
  return {values.begin(), values.end()};
}

std::vector<std::vector<float>> run_all(const HostHandle& q, const HostHandle& k,
                                        const HostHandle& v, const HostHandle* mask,
                                        const AttentionOptions& options) {
  const auto [out, lse] = Cpu::float_attention(q, k, v, mask, options);
  const HostHandle g = random_tensor(out->shape(), out->dtype(), 9);
  const auto [gq, gk, gv] = Cpu::float_attention_backward(g, q, k, v, mask, out, lse, options);
  return {floats_of(out), floats_of(lse), floats_of(gq), floats_of(gk), floats_of(gv)};
}

}  // namespace

TEST_CASE("attention conforms with every instruction set") {
  for (int64_t rest = cpu::supported_targets(); rest != 0; rest &= rest - 1) {
    cpu::restrict_targets_for_test(rest & -rest);
    const std::string target = cpu::target_name();
    CAPTURE(target);
    const ConformanceOptions options{.only = "attention"};
    for (const auto& failure : run_conformance<Cpu>(kCpu, options)) FAIL_CHECK(to_string(failure));
    cpu::restrict_targets_for_test(0);
  }
}

// Scores and sums are floats, and weights of bf16 may be rounded on their way to the values: a few
// units of the last place of the largest value.
TEST_CASE("attention of 16-bit floats is near that of doubles, with every instruction set") {
  struct Sizes {
    int64_t heads, key_heads, queries, keys, width, values;
  };
  const Sizes all[] = {{2, 2, 1, 130, 64, 64}, {4, 2, 3, 200, 20, 33},  {2, 1, 4, 5, 1, 1},
                       {1, 1, 17, 40, 7, 5},   {2, 2, 64, 128, 64, 64}, {3, 1, 130, 259, 40, 70},
                       {1, 1, 300, 17, 33, 3}, {2, 2, 257, 300, 16, 32}};
  const auto wide = [](const HostHandle& x) { return Reference::float_cast(x, DType::f64); };
  for (int64_t rest = cpu::supported_targets(); rest != 0; rest &= rest - 1) {
    cpu::restrict_targets_for_test(rest & -rest);
    for (const DType dtype : {DType::bf16, DType::f16}) {
      for (const Sizes& s : all) {
        CAPTURE(std::string(cpu::target_name()));
        CAPTURE(to_string(dtype));
        CAPTURE(s.queries);
        CAPTURE(s.keys);
        const HostHandle q = random_tensor({2, s.heads, s.queries, s.width}, dtype, 1);
        const HostHandle k = random_tensor({2, s.key_heads, s.keys, s.width}, dtype, 2);
        const HostHandle v = random_tensor({2, s.key_heads, s.keys, s.values}, dtype, 3);
        const HostHandle mask = random_tensor({s.queries, s.keys}, dtype, 4);
        const HostHandle wide_mask = wide(mask);
        const double unit = dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
        for (const bool causal : {false, true}) {
          const AttentionOptions options{.scale = 0.3, .causal = causal};
          for (const bool masked : {false, true}) {
            const auto [out, lse] =
                Cpu::float_attention(q, k, v, masked ? &mask : nullptr, options);
            const auto [want, want_lse] = Reference::float_attention(
                wide(q), wide(k), wide(v), masked ? &wide_mask : nullptr, options);
            CHECK(out->dtype() == dtype);
            check_close(wide(out), want, 2 * unit);
            check_close(wide(lse), want_lse, 1e-5);
          }
        }
      }
    }
    cpu::restrict_targets_for_test(0);
  }
}

TEST_CASE("attention of 16-bit floats: what sees nothing is zero, NaN stays with its query") {
  const double inf = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const int64_t queries : {3, 6}) {
      std::vector<double> of_mask(static_cast<size_t>(queries * 2), 0.0);
      of_mask[2] = of_mask[3] = -inf;  // query 1
      const auto tensor = [&](const std::vector<double>& x, const Shape& shape) {
        return host::from_data(TensorData(x, shape).cast(dtype), Device());
      };
      std::vector<double> of_q(static_cast<size_t>(queries), 0.5);
      of_q[2] = std::numeric_limits<double>::quiet_NaN();
      const HostHandle q = tensor(of_q, {1, 1, queries, 1});
      const HostHandle k = tensor({1, 1}, {1, 1, 2, 1});
      const HostHandle mask = tensor(of_mask, {queries, 2});
      const auto [out, lse] = Cpu::float_attention(q, k, k, &mask, {});
      const std::vector<double> got = values_of(out);
      CHECK(got[0] == 1.0);
      CHECK(got[1] == 0.0);
      CHECK(values_of(lse)[1] == -inf);
      CHECK(std::isnan(got[2]));
    }
  }
}

TEST_CASE("attention gives the same bits at any number of threads") {
  const int before = num_threads();
  const AttentionOptions plain{.scale = 0.2};
  const AttentionOptions everything{.scale = 0.2, .causal = true, .dropout = 0.2, .stream = {5, 3}};
  // One head of keys (two passes at several threads) and many; queries that fill blocks and not.
  for (const auto& [heads, key_heads, queries, keys] :
       {std::array<int64_t, 4>{1, 1, 300, 517}, std::array<int64_t, 4>{4, 1, 130, 260},
        std::array<int64_t, 4>{6, 6, 128, 128}, std::array<int64_t, 4>{2, 2, 1, 700}}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      const HostHandle q = random_tensor({1, heads, queries, 24}, dtype, 1);
      const HostHandle k = random_tensor({1, key_heads, keys, 24}, dtype, 2);
      const HostHandle v = random_tensor({1, key_heads, keys, 20}, dtype, 3);
      const HostHandle mask = random_tensor({queries, keys}, dtype, 4);
      for (const AttentionOptions& options : {plain, everything}) {
        set_num_threads(1);
        const auto want = run_all(q, k, v, options.causal ? nullptr : &mask, options);
        for (const int threads : {2, 3}) {
          if (threads > max_num_threads()) continue;
          set_num_threads(threads);
          CHECK(run_all(q, k, v, options.causal ? nullptr : &mask, options) == want);
        }
      }
    }
  }
  set_num_threads(before);
}

TEST_CASE("the memory of attention is linear in the number of queries and keys") {
  const auto peak_of = [](int64_t n) {
    const HostHandle q = random_tensor({1, 8, n, 64}, DType::f32, 1);
    const HostHandle k = random_tensor({1, 8, n, 64}, DType::f32, 2);
    const HostHandle v = random_tensor({1, 8, n, 64}, DType::f32, 3);
    const size_t before = memory_stats().bytes_in_use;
    reset_memory_stats();
    const AttentionOptions options{.scale = 0.125, .causal = true};
    const auto [out, lse] = Cpu::float_attention(q, k, v, nullptr, options);
    const auto gradients = Cpu::float_attention_backward(out, q, k, v, nullptr, out, lse, options);
    return memory_stats().peak_bytes_in_use - before;
  };
  const size_t at_1024 = peak_of(1024);
  const size_t at_2048 = peak_of(2048);
  MESSAGE("peak at 1x8x2048x64, forward and backward: ", at_2048 / 1024, " KiB");
  CHECK(at_2048 < 2.2 * static_cast<double>(at_1024));
  // Output and three gradients are 16 MiB; one head's scores alone would be 16 MiB more.
  CHECK(at_2048 < size_t{28} << 20);
}

TEST_CASE("attention of NaN and infinities") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  // Query 0 meets a NaN; queries 1 and 2 do not.
  const HostHandle q =
      Cpu::float_from_data(TensorData(std::vector<float>{nan, 1, -1}, Shape{1, 1, 3, 1}), kCpu);
  const HostHandle k =
      Cpu::float_from_data(TensorData(std::vector<float>{1, 2}, Shape{1, 1, 2, 1}), kCpu);
  const HostHandle mask = Cpu::float_from_data(
      TensorData(std::vector<float>{0, -inf, 0, -inf, -inf, -inf}, Shape{3, 2}), kCpu);
  const auto [out, lse] = Cpu::float_attention(q, k, k, &mask, {});
  const auto values = floats_of(out);
  CHECK(std::isnan(values[0]));
  CHECK(values[1] == 1.0f);
  CHECK(values[2] == 0.0f);
  CHECK(floats_of(lse)[2] == -inf);
  const auto [gq, gk, gv] = Cpu::float_attention_backward(out, q, k, k, &mask, out, lse, {});
  CHECK(floats_of(gq)[2] == 0.0f);
}
