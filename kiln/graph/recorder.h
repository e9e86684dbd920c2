// Recorder: what a capture has seen so far. Internal to kiln/graph.
#pragma once

#include <unordered_map>

#include "kiln/graph/capture.h"
#include "kiln/graph/rows.h"

namespace kiln::graph {

class Recorder {
 public:
  explicit Recorder(const CaptureOptions& options) : options_(options) {}

  ValueId add_input(const ErasedTensor& x, std::string name);
  void name_constant(const ErasedTensor& x, std::string name);
  ValueId value_of(const ErasedTensor& x);
  Graph finish(std::span<const ErasedTensor> outputs);
  size_t nodes() const { return graph_.nodes.size(); }

  // Arguments of a row, before it runs.
  Argument argument(const Arg<ErasedTensor>& x) { return one(value_of(x.get()), x.is_in_place()); }
  Argument argument(const ErasedTensor* x) { return one(x == nullptr ? kNoValue : value_of(*x)); }
  Argument argument(std::span<const ErasedTensor> xs) { return list(xs, false); }
  Argument argument(std::span<ErasedTensor> xs) { return list(xs, true); }
  Argument argument(const TensorData& data);  // copies: its owner may change it
  template <class T>
  Argument argument(const T& attribute) {
    Argument out;
    out.attribute = attribute;
    return out;
  }

  // A node, once it has run.
  void add(Node node, std::span<const ErasedTensor> results);
  // No graph comes of it: throws with fullgraph, and stops recording without.
  void fail(const std::string& message);
  const std::string& failure() const { return failure_; }
  // A tensor that was made of host memory.
  void add_outside(const ErasedTensor& x);
  // A row that gave values to the host.
  void add_read(int32_t row, const ErasedTensor& x, const TensorData& values);

  // f(), asked while this recorder does not count among those who keep the caller's tensor.
  template <class F>
  bool without_own(const ErasedTensor& x, F&& f) {
    sweep();
    const bool held = ids_.contains(x.get());
    if (held) x->release();  // the caller has another
    const bool out = f();
    if (held) x->retain();
    return out;
  }

 private:
  // Whether x holds what it held before the capture, in each replay.
  bool is_constant(const ErasedTensor& x) const;
  // A row whose result is as large as values say.
  void add_size(const ErasedTensor& x);
  Argument one(ValueId id, bool in_place = false);
  Argument list(std::span<const ErasedTensor> xs, bool in_place);
  ValueId add_value(const ErasedTensor& x, Origin origin);
  // Drops the tensors that nobody else knows any more: their addresses may be given to others.
  void sweep();

  CaptureOptions options_;
  std::string failure_;
  Graph graph_;
  std::unordered_map<const TensorBase*, ValueId> ids_;
  std::vector<ErasedTensor> held_;                    // by value; null when it was dropped
  std::vector<ValueId> live_;                         // computed values that are held
  std::unordered_map<const void*, int32_t> outside_;  // memory of inputs and constants
  std::unordered_map<const TensorBase*, std::string> names_;
  int32_t memories_ = 0;
  size_t swept_at_ = 0;
};

// Puts the table that records before those of all backends. They stay.
void install_capture_table();

}  // namespace kiln::graph
