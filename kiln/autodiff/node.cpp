#include "kiln/autodiff/node.h"

namespace kiln::autodiff {

namespace detail {

uint64_t next_sequence() {
  static constinit std::atomic<uint64_t> counter{1};
  return counter.fetch_add(1, std::memory_order_relaxed);
}

namespace {
constinit thread_local Doomed* doomed_list = nullptr;
constinit thread_local bool deleting = false;
}  // namespace

void doom(Doomed* node) noexcept {
  if (deleting) {
    node->next_doomed = doomed_list;
    doomed_list = node;
    return;
  }
  deleting = true;
  node->delete_now();
  while (doomed_list != nullptr) {
    Doomed* next = doomed_list;
    doomed_list = next->next_doomed;
    next->delete_now();
  }
  deleting = false;
}

}  // namespace detail

namespace {
constinit std::atomic<TraceProvider> trace_provider{nullptr};
}

void set_trace_provider(TraceProvider provider) { trace_provider = provider; }

std::string anomaly_trace() {
  const TraceProvider provider = trace_provider.load();
  return provider == nullptr ? "" : provider();
}

void throw_anomaly(const char* op, const std::string& what, const std::string& trace) {
  if (trace.empty()) throw_error<AutodiffError>("backward of ", op, ": ", what);
  throw_error<AutodiffError>("backward of ", op, ": ", what, "; the op was recorded here:\n",
                             trace);
}

void throw_modified(const char* op, uint32_t saved, uint32_t now) {
  throw_error<AutodiffError>("backward: a tensor that the gradient of ", op,
                             " needs was modified in place after it was saved; got version ", now,
                             "; expected version ", saved,
                             "; try the op without the trailing _, or clone() before it");
}

}  // namespace kiln::autodiff
