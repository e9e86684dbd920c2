#include "kiln/graph/capture.h"

#include <algorithm>
#include <cstring>

#include "kiln/backend/dispatch/views.h"
#include "kiln/backend/host_tensor.h"
#include "kiln/graph/passes/effects.h"
#include "kiln/graph/recorder.h"

namespace kiln::graph {

namespace detail {
constinit thread_local Recorder* recorder = nullptr;
}

namespace {

// Reads of so many bytes are compared in a replay; more are an error.
constexpr size_t kMostExpected = 64;
// So many new rows are recorded between two sweeps.
constexpr size_t kSweepEvery = 256;

const void* memory_of(const ErasedTensor& x) {
  const Layout layout = layout_of(x);
  return layout ? layout.storage : nullptr;
}

}  // namespace

// ---- Recorder

ValueId Recorder::add_value(const ErasedTensor& x, Origin origin) {
  const auto id = static_cast<ValueId>(graph_.values.size());
  Value& value = graph_.values.emplace_back();
  value.shape = x->shape();
  value.dtype = x->dtype();
  value.device = x->device();
  value.origin = origin;
  value.memory = memories_++;
  value.set_layout(layout_of(x));
  held_.push_back(x);
  ids_[x.get()] = id;
  return id;
}

ValueId Recorder::add_input(const ErasedTensor& x, std::string name) {
  if (const auto found = ids_.find(x.get()); found != ids_.end()) return found->second;
  const ValueId id = add_value(x, Origin::input);
  Value& value = graph_[id];
  value.name = std::move(name);
  graph_.inputs.push_back(id);
  if (const void* memory = memory_of(x)) {
    value.memory = outside_.try_emplace(memory, value.memory).first->second;
  }
  return id;
}

void Recorder::name_constant(const ErasedTensor& x, std::string name) {
  names_[x.get()] = std::move(name);
}

ValueId Recorder::value_of(const ErasedTensor& x) {
  if (const auto found = ids_.find(x.get()); found != ids_.end()) return found->second;
  const ValueId id = add_value(x, Origin::constant);
  Value& value = graph_[id];
  value.constant = x;
  if (const auto name = names_.find(x.get()); name != names_.end()) value.name = name->second;
  if (const void* memory = memory_of(x)) {
    value.memory = outside_.try_emplace(memory, value.memory).first->second;
  }
  return id;
}

Argument Recorder::one(ValueId id, bool in_place) {
  Argument out;
  out.kind = Argument::Kind::tensor;
  out.operands.push_back({id, in_place, false});
  return out;
}

Argument Recorder::list(std::span<const ErasedTensor> xs, bool in_place) {
  Argument out;
  out.kind = Argument::Kind::list;
  for (const ErasedTensor& x : xs) out.operands.push_back({value_of(x), in_place, false});
  return out;
}

Argument Recorder::argument(const TensorData& data) {
  TensorData own(data.shape(), data.dtype());
  if (data.bytes() != 0) std::memcpy(own.mutable_data(), data.data(), data.bytes());
  Argument out;
  out.attribute = own;
  return out;
}

void Recorder::add(Node node, std::span<const ErasedTensor> results) {
  for (const ErasedTensor& y : results) {
    // A row may return its operand.
    if (const auto found = ids_.find(y.get()); found != ids_.end()) {
      node.results.push_back(found->second);
      continue;
    }
    const ValueId id = add_value(y, Origin::node);
    live_.push_back(id);
    node.results.push_back(id);
    const void* memory = memory_of(y);
    node.each_operand([&](const Operand& o) {
      const ErasedTensor& x = held_[static_cast<size_t>(o.value)];
      // Where it is not known what lies in memory, all may be shared.
      if (memory == nullptr || memory == memory_of(x)) graph_[id].memory = graph_[o.value].memory;
    });
  }
  const bool sized_by_values = node.kind == NodeKind::row && node.row == kRow_bool_nonzero;
  graph_.nodes.push_back(std::move(node));
  if (sized_by_values) add_size(results[0]);
  if (graph_.nodes.size() >= swept_at_ + kSweepEvery) sweep();
}

void Recorder::add_size(const ErasedTensor& x) {
  if (options_.fullgraph) {
    return fail(concat("capture: bool_nonzero gives as many elements as are true (", x->shape()[0],
                       " now), on which a graph cannot depend; expected a function "
                       "of tensors whose shapes follow from shapes"));
  }
  Node node;
  node.kind = NodeKind::expect;
  node.name = "size";
  node.arguments.push_back(argument(Arg<ErasedTensor>(x)));
  node.arguments.push_back(argument(x->shape()));
  graph_.nodes.push_back(std::move(node));
}

void Recorder::add_outside(const ErasedTensor& x) {
  if (!x || ids_.contains(x.get())) return;
  const auto* host = dynamic_cast<const HostTensor*>(x.get());
  if (host == nullptr || !host->is_contiguous()) return;  // it stays a constant
  TensorData data(x->shape(), x->dtype());
  if (data.bytes() != 0) std::memcpy(data.mutable_data(), host->data(), data.bytes());
  Node node;
  const Kind kind = kind_of(x->dtype());
  node.row = kind == Kind::floating  ? kRow_float_from_data
             : kind == Kind::integer ? kRow_int_from_data
                                     : kRow_bool_from_data;
  node.name = row_name(node.row);
  node.arguments.push_back(argument(data));
  node.arguments.push_back(argument(x->device()));
  add(std::move(node), std::span(&x, 1));
}

bool Recorder::is_constant(const ErasedTensor& x) const {
  int32_t memory = -1;
  if (const auto known = ids_.find(x.get()); known != ids_.end()) {
    if (graph_[known->second].origin != Origin::constant) return false;
    memory = graph_[known->second].memory;
  } else if (const auto place = outside_.find(memory_of(x)); place != outside_.end()) {
    memory = place->second;
  }
  return std::ranges::none_of(graph_.nodes, [&](const Node& node) {
    bool writes = false;
    each_write(node, [&](ValueId id) { writes = writes || graph_[id].memory == memory; });
    return writes;
  });
}

void Recorder::add_read(int32_t row, const ErasedTensor& x, const TensorData& values) {
  if (options_.reads_constants && is_constant(x)) return;
  if (options_.fullgraph || values.bytes() > kMostExpected) {
    return fail(concat("capture: ", row_name(row), " reads ",
                       values.numel() == 1 ? "the value" : "the values", " of a tensor of shape ",
                       x->shape(), " and dtype ", x->dtype(),
                       ", on which a graph cannot depend; expected a function of tensors without "
                       "item(), to_data(), numpy() or a condition on values"));
  }
  Node node;
  node.kind = NodeKind::expect;
  node.row = row;
  node.name = row_name(row);
  node.arguments.push_back(argument(Arg<ErasedTensor>(x)));
  node.arguments.push_back(argument(values));
  graph_.nodes.push_back(std::move(node));
}

void Recorder::sweep() {
  swept_at_ = graph_.nodes.size();
  bool again = true;
  while (again) {  // a view that goes may be the last to keep another
    again = false;
    std::erase_if(live_, [&](ValueId id) {
      ErasedTensor& x = held_[static_cast<size_t>(id)];
      if (!x.unique()) return false;
      ids_.erase(x.get());
      x.reset();
      again = true;
      return true;
    });
  }
}

void Recorder::fail(const std::string& message) {
  if (options_.fullgraph) throw CaptureError(message);
  failure_ = message;
  if (detail::recorder == this) detail::recorder = nullptr;
}

Graph Recorder::finish(std::span<const ErasedTensor> outputs) {
  for (const ErasedTensor& y : outputs) graph_.outputs.push_back(value_of(y));
  return std::move(graph_);
}

// ---- Capture

Capture::Capture(const CaptureOptions& options) {
  if (detail::recorder != nullptr) {
    throw_error<CaptureError>("capture: this thread records already; expected one capture");
  }
  install_capture_table();
  recorder_ = std::make_unique<Recorder>(options);
  detail::recorder = recorder_.get();
}

Capture::~Capture() {
  if (detail::recorder == recorder_.get()) detail::recorder = nullptr;
}

ValueId Capture::add_input(const ErasedTensor& x, std::string name) {
  return recorder_->add_input(x, std::move(name));
}
void Capture::name_constant(const ErasedTensor& x, std::string name) {
  recorder_->name_constant(x, std::move(name));
}
ValueId Capture::value_of(const ErasedTensor& x) { return recorder_->value_of(x); }
size_t Capture::nodes() const { return recorder_->nodes(); }
const std::string& Capture::failure() const { return recorder_->failure(); }

Graph Capture::finish(std::span<const ErasedTensor> outputs) {
  if (detail::recorder == recorder_.get()) detail::recorder = nullptr;
  return recorder_->finish(outputs);
}

// ---- What reaches the host

void check_values(const ErasedTensor& x, const std::function<void(const ErasedTensor&)>& f) {
  Recorder* const recorder = detail::recorder;
  if (recorder == nullptr) return f(x);
  Node node;
  node.kind = NodeKind::check;
  node.name = "check";
  node.arguments.push_back(recorder->argument(Arg<ErasedTensor>(x)));
  node.host = [f](std::span<const ErasedTensor> xs) { f(xs[0]); };
  {
    const PauseCapture pause;
    f(x);
  }
  recorder->add(std::move(node), {});
}

void call_on_host(const char* name, std::span<const ErasedTensor> xs, HostFunction f) {
  Recorder* const recorder = detail::recorder;
  if (recorder == nullptr) return f(xs);
  Node node;
  node.kind = NodeKind::call;
  node.name = name;
  node.arguments.push_back(recorder->argument(xs));
  {
    const PauseCapture pause;
    f(xs);
  }
  node.host = std::move(f);
  recorder->add(std::move(node), {});
}

void note_host_tensor(const ErasedTensor& x) {
  if (detail::recorder != nullptr) detail::recorder->add_outside(x);
}

void note_read(const char* op, const ErasedTensor& x) {
  if (detail::recorder == nullptr) return;
  detail::recorder->fail(concat("capture: ", op, " reads the memory of a tensor of shape ",
                                x->shape(), " and dtype ", x->dtype(),
                                ", on which a graph cannot depend; expected a function of tensors "
                                "without numpy(), data_ptr() or an op that computes on the host"));
}

}  // namespace kiln::graph
