// Recurrences on the Cpu backend: the kernels of every instruction set against the reference, and
// bits at one thread and at several.
#include <doctest/doctest.h>

#include "kiln/backend/conformance/conformance.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/core/parallel.h"
#include "tests/backend/neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

std::vector<std::vector<float>> run_all(RecurrenceCell cell, int64_t sequences, int64_t size,
                                        const std::vector<int64_t>& batch_sizes) {
  RecurrenceOptions options;
  options.cell = cell;
  options.batch_sizes = batch_sizes;
  const int64_t gates = options.gates() * size;
  const HostHandle x = random_tensor({options.rows(), gates}, DType::f32, 1);
  const HostHandle h = random_tensor({sequences, size}, DType::f32, 2);
  const HostHandle c = random_tensor({sequences, size}, DType::f32, 3);
  const HostHandle w = random_tensor({gates, size}, DType::f32, 4);
  const HostHandle b = random_tensor({gates}, DType::f32, 5);
  const HostHandle g = random_tensor({options.rows(), size}, DType::f32, 6);
  const HostHandle* cells = cell == RecurrenceCell::lstm ? &c : nullptr;
  const auto [out, last, kept] = Cpu::float_recurrence(x, h, cells, w, &b, options);
  const auto [g_x, g_y, g_first] =
      Cpu::float_recurrence_backward(&g, nullptr, nullptr, out, kept, h, cells, w, options);
  std::vector<std::vector<float>> all;
  for (const HostHandle& t : {out, last, kept, g_x, g_y, g_first}) {
    const TensorData data = Cpu::float_into_data(t);
    const auto values = data.as<float>();
    all.emplace_back(values.begin(), values.end());
  }
  return all;
}

}  // namespace

TEST_CASE("recurrences conform with every instruction set") {
  for (int64_t rest = cpu::supported_targets(); rest != 0; rest &= rest - 1) {
    cpu::restrict_targets_for_test(rest & -rest);
    const std::string target = cpu::target_name();
    CAPTURE(target);
    const ConformanceOptions options{.only = "recurrence"};
    for (const auto& failure : run_conformance<Cpu>(kCpu, options)) FAIL_CHECK(to_string(failure));
    cpu::restrict_targets_for_test(0);
  }
}

TEST_CASE("recurrences give the same bits at any number of threads") {
  const int before = num_threads();
  for (const RecurrenceCell cell :
       {RecurrenceCell::tanh, RecurrenceCell::gru, RecurrenceCell::lstm}) {
    // Many steps, one step, and sequences that end.
    for (const std::vector<int64_t>& sizes :
         {std::vector<int64_t>{21, 21, 21}, std::vector<int64_t>{21},
          std::vector<int64_t>{21, 10, 2}}) {
      set_num_threads(1);
      const auto want = run_all(cell, 21, 70, sizes);
      for (const int threads : {2, 3}) {
        if (threads > max_num_threads()) continue;
        set_num_threads(threads);
        CHECK(run_all(cell, 21, 70, sizes) == want);
      }
    }
  }
  set_num_threads(before);
}
