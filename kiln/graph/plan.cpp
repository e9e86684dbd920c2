#include "kiln/graph/plan.h"

#include <chrono>
#include <cstring>

#include "kiln/backend/dispatch/views.h"
#include "kiln/core/cached_vector.h"
#include "kiln/graph/fused.h"
#include "kiln/graph/passes/last_uses.h"

namespace kiln::graph {

namespace {

template <class T>
const T& attribute(const Node& node, size_t i) {
  return std::get<T>(node.arguments[i].attribute);
}

const ErasedTensor& operand(const Node& node, Frame& frame) {
  return frame[node.arguments[0].operands[0].value];
}

void run_as_strided(const Node& node, Frame& frame) {
  const ErasedTensor& x = operand(node, frame);
  check_window(attribute<Shape>(node, 1), attribute<Shape>(node, 2), attribute<int64_t>(node, 3),
               x);  // another tensor than that of the capture may have less memory
  frame[node.results[0]] = kiln::detail::views_of(x).as_strided(
      x, attribute<Shape>(node, 1), attribute<Shape>(node, 2), attribute<int64_t>(node, 3));
}

void run_reinterpret(const Node& node, Frame& frame) {
  const ErasedTensor& x = operand(node, frame);
  frame[node.results[0]] =
      kiln::detail::views_of(x).reinterpret(x, attribute<DType>(node, 1), attribute<Shape>(node, 2),
                                            attribute<Shape>(node, 3), attribute<int64_t>(node, 4));
}

void run_expect(const Node& node, Frame& frame) {
  if (const auto* shape = std::get_if<Shape>(&node.arguments[1].attribute)) {
    if (operand(node, frame)->shape() == *shape) return;
    throw ValueChanged{concat("the number of true elements, which was ", (*shape)[0])};
  }
  const TensorData now = read_values(node.row, operand(node, frame));
  const auto& then = attribute<TensorData>(node, 1);
  if (now.bytes() != then.bytes() || std::memcmp(now.data(), then.data(), then.bytes()) != 0) {
    throw ValueChanged{
        concat(node.name, " of a tensor of shape ", then.shape(), " and dtype ", then.dtype())};
  }
}

void run_host(const Node& node, Frame& frame) {
  kiln::detail::CachedVector<ErasedTensor> xs;
  node.each_operand([&](const Operand& o) { xs.push_back(frame[o.value]); });
  node.host(xs);
}

void run_node(const Node& node, Frame& frame) {
  switch (node.kind) {
    case NodeKind::row:
      return run_row(node, frame);
    case NodeKind::as_strided:
      return run_as_strided(node, frame);
    case NodeKind::reinterpret:
      return run_reinterpret(node, frame);
    case NodeKind::expect:
      return run_expect(node, frame);
    case NodeKind::check:
    case NodeKind::call:
      return run_host(node, frame);
    case NodeKind::fused:
      return run_fused(node, frame);
  }
}

}  // namespace

Plan::Plan(Graph graph)
    : graph_(std::move(graph)), constants_(graph_.constants()), times_(graph_.nodes.size()) {
  find_last_uses(graph_);
  std::vector<char> made(graph_.values.size(), 0);
  for (const Node& node : graph_.nodes) {
    for (const ValueId id : node.results) made[static_cast<size_t>(id)] = 1;
  }
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i] != 0) computed_.push_back(static_cast<ValueId>(i));
  }
}

Plan::~Plan() { delete spare_.load(); }

std::unique_ptr<Frame> Plan::take_frame() const {
  if (Frame* spare = spare_.exchange(nullptr, std::memory_order_acquire)) {
    return std::unique_ptr<Frame>(spare);
  }
  auto frame = std::make_unique<Frame>();
  frame->slots.resize(graph_.values.size());
  frame->nanoseconds.resize(graph_.nodes.size());
  for (const ValueId id : constants_) (*frame)[id] = graph_[id].constant;
  return frame;
}

void Plan::clear(Frame& frame) const {
  for (const ValueId id : computed_) {
    if (graph_[id].origin == Origin::constant) {
      frame[id] = graph_[id].constant;
    } else {
      frame[id].reset();
    }
  }
  for (const ValueId id : graph_.inputs) frame[id].reset();
  frame.tape = nullptr;
}

void Plan::run_measured(Frame& frame) const {
  using Clock = std::chrono::steady_clock;
  Clock::time_point then = Clock::now();
  size_t i = 0;
  for (const Node& node : graph_.nodes) {
    run_node(node, frame);
    for (const ValueId id : node.released) frame[id].reset();
    const Clock::time_point now = Clock::now();
    frame.nanoseconds[i++] =
        std::chrono::duration_cast<std::chrono::nanoseconds>(now - then).count();
    then = now;
  }
  times_.add(frame.nanoseconds);
}

Plan::Results Plan::run(std::span<const ErasedTensor> inputs, const RandomTape* tape) const {
  if (inputs.size() != graph_.inputs.size()) {
    throw_error<ValueError>("graph: expected ", graph_.inputs.size(), " inputs; got ",
                            inputs.size());
  }
  struct Lease {
    const Plan& plan;
    std::unique_ptr<Frame> frame;
    ~Lease() {
      plan.clear(*frame);
      Frame* none = nullptr;
      if (plan.spare_.compare_exchange_strong(none, frame.get(), std::memory_order_release)) {
        static_cast<void>(frame.release());
      }
    }
  } lease{*this, take_frame()};
  Frame& frame = *lease.frame;
  frame.tape = tape;
  for (size_t i = 0; i < inputs.size(); ++i) frame[graph_.inputs[i]] = inputs[i];
  if (times_.begins()) {
    run_measured(frame);
  } else {
    for (const Node& node : graph_.nodes) {
      run_node(node, frame);
      for (const ValueId id : node.released) frame[id].reset();
    }
  }
  Results out;
  out.reserve(graph_.outputs.size());
  for (const ValueId id : graph_.outputs) out.push_back(frame[id]);
  return out;
}

}  // namespace kiln::graph
