// The peer's models under torch.compile, which only Python has: a program beside this one.
#pragma once

#include <memory>
#include <string>

#include "bench/workload.h"

namespace kiln::bench {

class CompiledPeer {
 public:
  // Starts `python` with bench/python/compiled.py. Throws std::runtime_error when it cannot.
  CompiledPeer(const std::string& python, int threads);
  ~CompiledPeer();
  CompiledPeer(const CompiledPeer&) = delete;
  CompiledPeer& operator=(const CompiledPeer&) = delete;

  // The compiled half of a row, null when there is none. Compiling takes up to a minute. One lives
  // at a time.
  std::unique_ptr<Workload> make(const std::string& row);

 private:
  class Process;
  class Half;
  std::unique_ptr<Process> process_;
};

}  // namespace kiln::bench
