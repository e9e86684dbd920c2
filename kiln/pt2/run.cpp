// Runs steps, each on what stands in its slots.
#include <unordered_map>

#include "kiln/core/utf8.h"
#include "kiln/graph/capture.h"
#include "kiln/pt2/program.h"

namespace kiln::pt2 {

namespace {

using Table = std::unordered_map<std::string, const Operator*>;

const Table& table() {
  static const Table all = [] {
    Table out;
    const auto add = [&](const std::string& prefix, std::span<const Operator> family) {
      for (const Operator& one : family) {
        const std::string overloads = one.overloads;
        for (size_t begin = 0; begin < overloads.size();) {
          const size_t end = std::min(overloads.find(' ', begin), overloads.size());
          out[prefix + one.name + "." + overloads.substr(begin, end - begin)] = &one;
          begin = end + 1;
        }
      }
    };
    for (const auto family : {unary_operators(),     binary_operators(),    activation_operators(),
                              creation_operators(),  view_operators(),      rearranging_operators(),
                              index_operators(),     reduction_operators(), sorting_operators(),
                              product_operators(),   linalg_operators(),    convolution_operators(),
                              pooling_operators(),   norm_operators(),      resampling_operators(),
                              loss_operators(),      embedding_operators(), recurrent_operators(),
                              random_operators(),    special_operators(),   spectrum_operators(),
                              conversion_operators()}) {
      add("aten.", family);
    }
    for (const Operator& one : number_operators()) out[one.name] = &one;
    for (const Operator& one : control_operators())
      out[std::string("higher_order.") + one.name] = &one;
    return out;
  }();
  return all;
}

const Operator* look_up(const std::string& name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : found->second;
}

void write_results(const Step& step, Call& call, Frame& frame) {
  Values& results = call.results();
  if (step.form == Form::in_place) {
    const Value target = value_of(step.arguments[0], frame);
    const Tensor* result = results.empty() ? nullptr : results[0].tensor();
    if (target.tensor() == nullptr || result == nullptr) call.fail("expected a tensor to write to");
    Tensor x = *target.tensor();
    x.copy_(*result);
    results[0] = {x};
  } else if (step.form == Form::copy && !results.empty()) {
    if (const Tensor* view = results[0].tensor()) {
      results[0] = {view->clone()};
    } else if (const auto* views = std::get_if<Value::List>(&results[0].held)) {
      Values copies = **views;
      for (Value& one : copies) {
        if (const Tensor* x = one.tensor()) one = {x->clone()};
      }
      results[0] = {std::make_shared<const Values>(std::move(copies))};
    }
  }
  if (results.size() < step.outputs.size()) {
    call.fail(concat("it gives ", results.size(), " results; expected ", step.outputs.size()));
  }
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const Output& place = step.outputs[i];
    if (!place.is_list) {
      if (place.slots[0] >= 0) frame[place.slots[0]] = std::move(results[i]);
      continue;
    }
    const auto* list = std::get_if<Value::List>(&results[i].held);
    if (list == nullptr || (*list)->size() != place.slots.size()) {
      call.fail(concat("it gives ", list == nullptr ? 1 : (*list)->size(), " tensors; expected ",
                       place.slots.size()));
    }
    for (size_t n = 0; n < place.slots.size(); ++n) {
      if (place.slots[n] >= 0) frame[place.slots[n]] = (**list)[n];
    }
  }
}

}  // namespace

void run_block(const Block& block, Frame& frame) {
  for (const Step& step : block.steps) {
    try {
      Call call(step, frame);
      step.op->run(call);
      call.check_all_read();
      write_results(step, call, frame);
    } catch (const graph::CaptureError&) {
      throw;
    } catch (const NotImplementedError& error) {
      throw_error<NotImplementedError>(step.label, ": ", error.what());
    } catch (const Error& error) {
      throw_error<ValueError>(step.label, ": ", error.what());
    }
    for (const int slot : step.dying) frame[slot] = {};
  }
}

Target find_operator(const std::string& target) {
  constexpr std::string_view kOps = "torch.ops.";
  std::string name = target;
  if (name.starts_with(kOps)) name = name.substr(kOps.size());
  if (const Operator* found = look_up(name)) return {found, Form::plain};
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || !name.starts_with("aten.")) return {};
  const std::string base = name.substr(0, dot), overload = name.substr(dot);
  if (base.ends_with('_') && !base.ends_with("__")) {
    return {look_up(base.substr(0, base.size() - 1) + overload), Form::in_place};
  }
  constexpr std::string_view kCopy = "_copy";
  if (base.ends_with(kCopy)) {
    return {look_up(base.substr(0, base.size() - kCopy.size()) + overload), Form::copy};
  }
  return {};
}

std::vector<std::string> operators() {
  std::vector<std::string> out;
  for (const auto& [name, op] : table()) out.push_back(name);
  std::ranges::sort(out);
  return out;
}

}  // namespace kiln::pt2
