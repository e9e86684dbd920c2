// Capture: a function's rows as a graph, recorded while it runs.
//
// Note [Capture]
// A capture stands where rows reach their backend, below Autodiff, autocast and vmap: what it sees
// of a backward pass, of a second derivative and of an optimizer's step are rows like any other.
// The tables that dispatch finds have an entry before each backend's that asks one thread-local
// pointer; without a capture on this thread it goes on to the backend. The function computes its
// real values while it is captured, so that a first call costs little more than an eager one.
//
// A tensor that no recorded row made and that is no input is a constant of the graph: it is held,
// and what a later row writes into it is seen by the next replay. So parameters are trained in
// place.
//
// What reaches the host cannot be repeated. A read of a few values becomes a node that compares
// them in each replay (NodeKind::expect); a check of ranges is done again in each replay (`check`);
// an optimizer's step is called again (`call`). Any other read ends the recording: the function
// goes on, and failure() names the row. With fullgraph a read is a CaptureError instead.
#pragma once

#include <functional>
#include <memory>

#include "kiln/core/error.h"
#include "kiln/graph/graph.h"

namespace kiln::graph {

// A function that cannot be a graph; the message names the row.
class CaptureError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

struct CaptureOptions {
  // A read of values is a CaptureError, however few they are.
  bool fullgraph = false;
  // A constant's value may be read, and what follows from it stays as it was: for a graph that
  // keeps its constants.
  bool reads_constants = false;
};

class Recorder;

// Records this thread's rows from construction to finish() or destruction.
class Capture {
 public:
  explicit Capture(const CaptureOptions& options = {});
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // A tensor that each replay is given anew.
  ValueId add_input(const ErasedTensor& x, std::string name = {});
  // Names a tensor that is a constant as soon as a row reads it.
  void name_constant(const ErasedTensor& x, std::string name);
  // The value that a tensor is; a constant when it is not known.
  ValueId value_of(const ErasedTensor& x);
  // How many nodes there are by now.
  size_t nodes() const;
  // Why the recording ended before the function did; "" when it did not. There is no graph then.
  const std::string& failure() const;
  // Ends the recording.
  Graph finish(std::span<const ErasedTensor> outputs);

 private:
  std::unique_ptr<Recorder> recorder_;
};

namespace detail {
extern constinit thread_local Recorder* recorder;
}

// Whether this thread records.
inline bool is_capturing() { return detail::recorder != nullptr; }

// While it lives, this thread records nothing.
class PauseCapture {
 public:
  PauseCapture() : before_(detail::recorder) { detail::recorder = nullptr; }
  ~PauseCapture() { detail::recorder = before_; }
  PauseCapture(const PauseCapture&) = delete;
  PauseCapture& operator=(const PauseCapture&) = delete;

 private:
  Recorder* before_;
};

// f(x), which looks at x and throws when its values are not legal. A replay does it again.
void check_values(const ErasedTensor& x, const std::function<void(const ErasedTensor&)>& f);

// f(xs), on the host, with effects of its own; what it computes is not recorded. A replay does it
// again, with the values that the tensors have then.
void call_on_host(const char* name, std::span<const ErasedTensor> xs, HostFunction f);

// Says that x was just made of host memory, and not by a row. Each replay makes it anew, of the
// values that it has now.
void note_host_tensor(const ErasedTensor& x);

// Says that op is about to read x's memory, which no replay could see: this thread records no
// further, or throws CaptureError.
void note_read(const char* op, const ErasedTensor& x);

}  // namespace kiln::graph
