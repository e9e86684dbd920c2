#include "kiln/compile/compile.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "kiln/compile/variant.h"
#include "kiln/core/warning.h"
#include "kiln/nn/module.h"

namespace kiln {

using compiling::Variant;

struct Compiled::State {
  Function f;
  CompileOptions options;
  std::string name;
  std::vector<nn::Module*> modules;  // all of the trees
  std::mutex mutex;                  // held while something is captured or looked up
  std::vector<std::shared_ptr<Variant>> variants;
  std::atomic<int64_t> replayed{0}, captured{0}, eager{0};
  int misses = 0;  // calls that found no variant for a value that is read
  bool said = false;

  std::vector<compiling::HeldTensor> held_now() const;
  // What the modules have now, with what it is: the same for variants of which it holds.
  std::vector<compiling::HeldTensor> held;
  bool holds() const;
  std::shared_ptr<Variant> capture(const TensorList& inputs, TensorList& results);
  void drop_stale();
  // A variant for these inputs that is none of those; null when there is none.
  std::shared_ptr<Variant> next_fitting(const TensorList& inputs,
                                        const std::vector<std::shared_ptr<Variant>>& missed);
  std::string why_eager;  // of calls that no variant fits
};

std::vector<compiling::HeldTensor> Compiled::State::held_now() const {
  std::vector<compiling::HeldTensor> out;
  const auto add = [&](const Tensor& x) {
    if (!x.defined()) return;
    const Value& value = kiln::detail::parts_or_value("compile", x);
    out.push_back({x, value.inner.address(), value.node.address()});
  };
  for (nn::Module* module : options.modules) {
    for (const Tensor& x : module->parameters()) add(x);
    for (const Tensor& x : module->buffers()) add(x);
  }
  for (const Tensor& x : options.tensors) add(x);
  return out;
}

// A module may be given other parameters, and these other values.
bool Compiled::State::holds() const {
  size_t i = 0;
  const auto same = [&](const Tensor& x) {
    if (!x.defined()) return true;
    const bool known = i < held.size() && held[i].tensor.is_same(x) && held[i].holds();
    ++i;
    return known;
  };
  for (nn::Module* module : options.modules) {
    for (const Tensor& x : module->parameters()) {
      if (!same(x)) return false;
    }
    for (const Tensor& x : module->buffers()) {
      if (!same(x)) return false;
    }
  }
  for (const Tensor& x : options.tensors) {
    if (!same(x)) return false;
  }
  return i == held.size();
}

// Variants for parameters that are no more go.
void Compiled::State::drop_stale() {
  if (holds()) return;
  variants.clear();
  held = held_now();
}

std::shared_ptr<Variant> Compiled::State::next_fitting(
    const TensorList& inputs, const std::vector<std::shared_ptr<Variant>>& missed) {
  const std::lock_guard lock(mutex);
  drop_stale();
  for (const auto& variant : variants) {
    if (compiling::fits(variant->inputs, inputs) && compiling::fits(variant->mode, modules) &&
        (!variant->eager.empty() || variant->fits_leaves()) &&
        std::find(missed.begin(), missed.end(), variant) == missed.end()) {
      return variant;
    }
  }
  return nullptr;
}

std::shared_ptr<Variant> Compiled::State::capture(const TensorList& inputs, TensorList& results) {
  auto variant = std::make_shared<Variant>();
  variant->inputs = compiling::guards_of(inputs);
  variant->mode = compiling::mode_now(modules);
  variant->held = held;
  results = compiling::capture(f, inputs, options, *variant);
  return variant;
}

Compiled::Compiled(Function f, CompileOptions options, std::string name)
    : state_(std::make_shared<State>()) {
  if (options.max_variants < 1) {
    throw_error<ValueError>("compile: expected at least one variant; got ", options.max_variants);
  }
  if (!(options.memory_budget >= 0.0 && options.memory_budget <= 1.0)) {
    throw_error<ValueError>("compile: expected a memory_budget from 0 to 1; got ",
                            options.memory_budget);
  }
  state_->f = std::move(f);
  state_->options = std::move(options);
  state_->name = std::move(name);
  for (nn::Module* module : state_->options.modules) {
    module->materialize();
    for (nn::Module* part : module->modules()) state_->modules.push_back(part);
  }
}

Compiled::State& Compiled::state() const {
  if (state_ == nullptr) {
    throw_error<ValueError>("Compiled: it was moved away; got an object that was moved from");
  }
  return *state_;
}

TensorList Compiled::operator()(const TensorList& inputs) const {
  State& state = this->state();
  if (state.options.disable || compiling::eager_reason(inputs) != nullptr) return state.f(inputs);
  std::vector<std::shared_ptr<Variant>> missed;
  for (;;) {
    const std::shared_ptr<Variant> variant = state.next_fitting(inputs, missed);
    if (variant == nullptr) break;
    if (!variant->eager.empty()) {
      ++state.eager;
      return state.f(inputs);
    }
    try {
      TensorList out = compiling::replay(variant, state.f, inputs);
      state.replayed.fetch_add(1, std::memory_order_relaxed);
      return out;
    } catch (const graph::ValueChanged& changed) {
      const std::lock_guard lock(state.mutex);
      state.why_eager = "capture: " + changed.what + " is another value in each call";
    }
    missed.push_back(variant);
  }
  std::unique_lock lock(state.mutex);
  if (!missed.empty() && ++state.misses > 2 * state.options.max_variants) {
    for (const auto& variant : missed)
      variant->eager = state.why_eager;  // it costs more than it gives
  }
  if (static_cast<int>(state.variants.size()) >= state.options.max_variants) {
    ++state.eager;
    if (!state.said) {
      state.said = true;
      warn(concat("compile: ", state.name, " has ", state.variants.size(),
                  " variants, and none fits this call: further ones are computed eagerly",
                  state.why_eager.empty() ? "" : "; ", state.why_eager));
    }
    lock.unlock();
    return state.f(inputs);
  }
  TensorList results;
  std::shared_ptr<Variant> variant = state.capture(inputs, results);
  ++state.captured;
  state.variants.push_back(std::move(variant));
  return results;
}

Compiled::Counts Compiled::counts() const {
  const std::lock_guard lock(state().mutex);
  return {static_cast<int64_t>(state().variants.size()), state().replayed, state().captured,
          state().eager};
}

bool Compiled::reads(const Tensor& x) const {
  const void* const address = kiln::detail::parts_or_value("compile", x).inner.address();
  const std::lock_guard lock(state().mutex);
  return std::any_of(state().variants.begin(), state().variants.end(), [&](const auto& variant) {
    const std::vector<const void*>& read = variant->read;
    return !variant->eager.empty() || std::find(read.begin(), read.end(), address) != read.end();
  });
}

void Compiled::reset() const {
  const std::lock_guard lock(state().mutex);
  state().variants.clear();
  state().replayed = state().captured = state().eager = 0;
}

std::string Compiled::explain() const {
  const Counts counts = this->counts();
  const std::lock_guard lock(state().mutex);
  std::string out =
      concat(state().name, ": ", counts.variants, " variants; ", counts.captured,
             " calls captured, ", counts.replayed, " replayed, ", counts.eager, " eager\n");
  for (size_t i = 0; i < state().variants.size(); ++i) {
    const Variant& v = *state().variants[i];
    out += concat("variant ", i, " ", compiling::to_string(v.inputs), v.mode.grad ? "" : " no_grad",
                  v.mode.autocast ? " autocast" : "", "\n");
    if (!v.eager.empty()) {
      out += "  eager: " + v.eager + "\n";
      continue;
    }
    const auto describe = [&](const char* what, const graph::Plan& plan) {
      const graph::Graph& graph = plan.graph();
      const graph::Cost cost = graph.cost();
      out += concat("  ", what, ": ", graph.nodes.size(), " nodes, ",
                    static_cast<double>(cost.flops) / 1e6, " Mflop, ",
                    static_cast<double>(cost.bytes) / 1e6, " MB read and written\n");
      for (const std::string& line : plan.times()) out += "    " + line + "\n";
    };
    describe("forward", *v.forward);
    if (v.backward) describe("backward", *v.backward);
    for (const std::string& line : v.report) out += "  " + line + "\n";
  }
  if (!state().why_eager.empty()) out += "eager calls: " + state().why_eager + "\n";
  return out;
}

std::string Compiled::graphs() const {
  const std::lock_guard lock(state().mutex);
  std::string out;
  for (const auto& variant : state().variants) {
    if (!variant->eager.empty()) continue;
    out += variant->forward->graph().str();
    if (variant->backward) out += "backward " + variant->backward->graph().str();
  }
  return out;
}

std::string Compiled::to_dot() const {
  const std::lock_guard lock(state().mutex);
  for (auto v = state().variants.rbegin(); v != state().variants.rend(); ++v) {
    if ((*v)->eager.empty()) return (*v)->forward->graph().to_dot();
  }
  return "";
}

namespace {

CompileOptions with_module(CompileOptions options, nn::Module& module) {
  options.modules.push_back(&module);
  return options;
}

}  // namespace

CompiledModule::CompiledModule(nn::Module& module, const CompileOptions& options)
    : module_(&module),
      compiled_(
          [&module](const TensorList& xs) { return TensorList{module.call_with_tensor(xs[0])}; },
          with_module(options, module), module.type_name()) {}

}  // namespace kiln
