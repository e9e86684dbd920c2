// Runs steps, each on what stands in its slots.
#include <map>

#include "kiln/graph/capture.h"
#include "kiln/onnx/read/program.h"

namespace kiln::onnx {

namespace {

const std::map<std::string, const Operator*>& table() {
  static const auto all = [] {
    std::map<std::string, const Operator*> out;
    for (const auto family :
         {elementwise_operators(), shape_operators(), reduction_operators(), layer_operators(),
          resize_operators(), recurrent_operators(), loss_operators(), attention_operators(),
          image_operators(), signal_operators(), selection_operators(), quantized_operators(),
          control_operators(), sequence_operators(), contributed_operators(),
          language_operators()}) {
      for (const Operator& one : family) out[one.name] = &one;
    }
    return out;
  }();
  return all;
}

// Whether what it gives is the same in each call of a graph, whose shapes are.
bool gives_sizes(const Step& step) {
  const std::string& op = step.node->op_type;
  return op == "Shape" || op == "Size" || op == "SequenceLength" || op == "OptionalHasElement";
}

void run_step(const Step& step, Frame& frame) {
  Call call(step, frame);
  const bool has_graphs = !step.blocks.empty();
  bool fixed = gives_sizes(step);
  if (!fixed && !has_graphs) {
    fixed =
        std::ranges::all_of(step.inputs, [&](int slot) { return slot < 0 || frame[slot].fixed; });
  }
  std::optional<graph::PauseCapture> pause;
  if (fixed) pause.emplace();
  step.op->run(call);
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (step.outputs[i] < 0) continue;
    Value& place = frame[step.outputs[i]];
    place = std::move(call.results()[i]);
    if (!has_graphs) place.fixed = fixed;
  }
}

}  // namespace

void run_block(const Block& block, Frame& frame) {
  for (const auto& [slot, x] : block.constants) {
    frame[slot] = {.tensor = x, .fixed = true};
  }
  for (const Step& step : block.steps) {
    try {
      run_step(step, frame);
    } catch (const graph::CaptureError&) {
      throw;
    } catch (const NotImplementedError& error) {
      throw_error<NotImplementedError>(step.label, ": ", error.what());
    } catch (const Error& error) {
      throw_error<ValueError>(step.label, ": ", error.what());
    }
  }
}

const Operator* find_operator(const std::string& domain, const std::string& name) {
  const auto found = table().find(domain.empty() ? name : domain + "." + name);
  return found == table().end() ? nullptr : found->second;
}

std::vector<std::string> operators() {
  std::vector<std::string> out;
  for (const auto& [name, op] : table()) out.push_back(name);
  return out;
}

}  // namespace kiln::onnx
