// compile: a function of tensors that is captured when it is called first, and replayed from then
// on.
//
//   auto step = kiln::compile([&](const Tensor& x, const Tensor& y) {
//     net.zero_grad();
//     Tensor loss = functional::cross_entropy(net(x), y);
//     loss.backward_accumulate();
//     optimizer.step();
//     return loss;
//   });
//   for (...) losses.push_back(step(x, y));
//
// Results, gradients and random numbers are those of the function itself, bit for bit, but with
// `freeze`. docs/graphs.md says what a function may do.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "kiln/tensor/autograd/custom_function.h"
#include "kiln/tensor/tensor.h"

namespace kiln {

namespace nn {
class Module;
}

struct CompileOptions {
  // A function that cannot be one graph is an error that names the row, and not computed eagerly.
  bool fullgraph = false;
  // So many variants are kept, for shapes, dtypes and modes; further ones are computed eagerly.
  int max_variants = 8;
  // Calls the function as it is.
  bool disable = false;
  // What the function holds and may be given other tensors later, or another mode: modules.
  std::vector<nn::Module*> modules = {};
  // The same for tensors by themselves.
  std::vector<Tensor> tensors = {};
  // Parameters and buffers of the modules keep their values: what depends on them alone is computed
  // once. For inference.
  bool freeze = false;
  // Every bit is that of the function. Without it, freeze also folds norms into products and merges
  // products, which round in another order.
  bool exact = false;

  // What the values of a step may take, as a part of what they take otherwise: activations and
  // norms are computed again in the backward pass to keep to it. Parameters do not count. 0: as
  // little as is possible. Results stay the same bits.
  double memory_budget = 1.0;

  // Passes, each of which can be left out.
  bool own_results = true;
  bool dead_code = true;
  bool common_subexpressions = true;
  bool constant_folding = true;
  bool norm_folding = true;
  bool merged_products = true;
  bool epilogues = true;
  bool joined_convolutions = true;
  bool fusion = true;
};

// A compiled function of lists of tensors. Copies share what was captured. Any number of threads
// may call it, one after another while something is captured.
class Compiled {
 public:
  using Function = std::function<TensorList(const TensorList&)>;

  explicit Compiled(Function f, CompileOptions options = {}, std::string name = "function");

  // Throws what the function throws; with fullgraph CaptureError for one that cannot be a graph.
  TensorList operator()(const TensorList& inputs) const;

  // Whether a graph that was captured reads a tensor that is not among its inputs; true, too, where
  // a call is no graph.
  bool reads(const Tensor& x) const;
  // What was captured, what the passes made of it, what it takes, and what is computed eagerly, and
  // why.
  std::string explain() const;
  // The graphs as text: for each variant that of the forward pass, and of the backward pass.
  std::string graphs() const;
  // The same for Graphviz: the forward pass of the variant that was captured last.
  std::string to_dot() const;
  // How many variants there are, and how many calls were replayed, captured and eager.
  struct Counts {
    int64_t variants = 0, replayed = 0, captured = 0, eager = 0;
    Counts& operator+=(const Counts& other) {
      variants += other.variants;
      replayed += other.replayed;
      captured += other.captured;
      eager += other.eager;
      return *this;
    }
  };
  Counts counts() const;
  // Forgets what was captured.
  void reset() const;

  struct State;

 private:
  // Throws ValueError when it was moved away.
  State& state() const;

  std::shared_ptr<State> state_;
};

namespace detail {

template <class F>
class CompiledFunction {
 public:
  CompiledFunction(F f, const CompileOptions& options)
      : f_(std::make_shared<F>(std::move(f))), options_(options) {}

  template <class... T>
    requires(std::is_convertible_v<const T&, Tensor> && ...)
  auto operator()(const T&... xs) const {
    using Result = std::decay_t<std::invoke_result_t<F&, decltype(as_tensor(xs))...>>;
    const auto call = [f = f_](const TensorList& list) {
      return [&]<size_t... i>(std::index_sequence<i...>) -> TensorList {
        if constexpr (std::is_void_v<Result>) {
          (*f)(list[i]...);
          return {};
        } else {
          return list_of_result((*f)(list[i]...));
        }
      }(std::index_sequence_for<T...>{});
    };
    // One for each number of arguments that it is called with.
    std::optional<Compiled>& compiled = (*compiled_)[sizeof...(T)];
    if (!compiled) compiled.emplace(call, options_);
    if constexpr (std::is_void_v<Result>) {
      (*compiled)({xs...});
    } else {
      return result_of_list<Result>((*compiled)({xs...}));
    }
  }

  // As of Compiled; of the calls so far.
  std::string explain() const { return text(&Compiled::explain); }
  std::string graphs() const { return text(&Compiled::graphs); }
  std::string to_dot() const { return text(&Compiled::to_dot); }
  Compiled::Counts counts() const {
    Compiled::Counts sum;
    for (const auto& [arity, compiled] : *compiled_) sum += compiled->counts();
    return sum;
  }
  void reset() const { compiled_->clear(); }

 private:
  static const Tensor& as_tensor(const Tensor& x) { return x; }
  std::string text(std::string (Compiled::*of)() const) const {
    std::string out;
    for (const auto& [arity, compiled] : *compiled_) out += ((*compiled).*of)();
    return out;
  }

  std::shared_ptr<F> f_;
  CompileOptions options_;
  std::shared_ptr<std::map<size_t, std::optional<Compiled>>> compiled_ =
      std::make_shared<std::map<size_t, std::optional<Compiled>>>();
};

}  // namespace detail

// A function of tensors that returns a tensor, a pair, tuple or vector of tensors, or nothing. It
// is called with tensors alone; other arguments belong into the function.
template <class F>
  requires(!std::is_base_of_v<nn::Module, std::decay_t<F>>)
detail::CompiledFunction<std::decay_t<F>> compile(F&& f, const CompileOptions& options = {}) {
  return {std::forward<F>(f), options};
}

// A module that takes one tensor and gives one. The module stays the caller's and is watched: other
// parameters, or train() and eval(), are captured anew. Its hooks are captured as they run.
class CompiledModule {
 public:
  CompiledModule(nn::Module& module, const CompileOptions& options);
  Tensor operator()(const Tensor& x) const { return compiled_({x})[0]; }
  nn::Module& module() const { return *module_; }
  std::string explain() const { return compiled_.explain(); }
  std::string graphs() const { return compiled_.graphs(); }
  std::string to_dot() const { return compiled_.to_dot(); }
  Compiled::Counts counts() const { return compiled_.counts(); }

 private:
  nn::Module* module_;
  Compiled compiled_;
};

inline CompiledModule compile(nn::Module& module, const CompileOptions& options = {}) {
  return {module, options};
}

}  // namespace kiln
