// The module's C interface.
#include <algorithm>
#include <exception>
#include <string>

#include <ATen/Parallel.h>
#include <torch/version.h>

#include "bench/peer/rows.h"
#include "bench/peer_api.h"

namespace kiln::bench::peer {
namespace {

std::string last_error;

const WorkloadTable& table() {
  static const WorkloadTable rows = [] {
    WorkloadTable made;
    add_op_rows(made);
    add_model_rows(made);
    return made;
  }();
  return rows;
}

// f(), with any exception turned into `failed` and a message: none may cross the C interface.
template <class T, class F>
T guarded(T failed, F f) {
  last_error.clear();
  try {
    return f();
  } catch (const std::exception& error) {
    last_error = error.what();
    // libtorch appends a stack trace to the message.
    last_error = last_error.substr(0, last_error.find('\n'));
  } catch (...) {
    last_error = "unknown exception";
  }
  return failed;
}

void* create(const char* row) {
  return guarded<void*>(nullptr, [&]() -> void* {
    const auto found = table().find(row);
    return found == table().end() ? nullptr : found->second().release();
  });
}

int run(void* row, int64_t iterations) {
  return guarded(-1, [&] {
    static_cast<Workload*>(row)->run(iterations);
    return 0;
  });
}

int64_t check(void* row, float* values, int64_t capacity) {
  return guarded<int64_t>(-1, [&] {
    const std::vector<float> found = static_cast<Workload*>(row)->check();
    const int64_t count = static_cast<int64_t>(found.size());
    std::copy_n(found.begin(), std::min(count, capacity), values);
    return count;
  });
}

void destroy(void* row) { delete static_cast<Workload*>(row); }
const char* error() { return last_error.c_str(); }

}  // namespace
}  // namespace kiln::bench::peer

const KilnBenchPeer* kiln_bench_peer() {
  namespace peer = kiln::bench::peer;
  static const KilnBenchPeer api{kKilnBenchPeerVersion,
                                 "PyTorch " TORCH_VERSION,
                                 [](int n) { at::set_num_threads(n); },
                                 peer::create,
                                 peer::run,
                                 peer::check,
                                 peer::destroy,
                                 peer::error};
  return &api;
}
