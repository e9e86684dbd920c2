// One captured form of a function: its guards, its plans, and what it does beside computing
// results. Internal to kiln/compile.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kiln/compile/guards.h"
#include "kiln/core/random_tape.h"
#include "kiln/graph/passes/passes.h"
#include "kiln/graph/plan.h"

namespace kiln::compiling {

using autodiff::Edge;
using AutodiffNode = autodiff::Node<Dispatch>;

// Note [Gradients of a compiled function]
// A first call runs the function eagerly while its rows are recorded, and then its backward pass,
// with a gradient of ones for each result, in a pass that changes nothing. The rows of both are
// cut into two graphs: what the second needs of the first is what the first gives out beside its
// results. A replay of the first is one node of autodiff, whose edges lead to the inputs and to the
// parameters that the function used; its backward is a replay of the second. With create_graph the
// function is called again, recorded by autodiff, with the random numbers of its call, and that is
// differentiated: derivatives of any order need no third kind of graph. A step that has its own
// backward pass inside, of any order, is rows like any other, and needs none of this.
struct Variant {
  std::vector<InputGuard> inputs;
  ModeGuard mode;
  std::vector<HeldTensor> held;
  std::string eager;  // why it is not replayed; "" when it is

  // ---- Forward

  std::unique_ptr<graph::Plan> forward;
  RandomTape tape;
  bool draws = false;  // random numbers

  // A result of the function.
  struct Output {
    enum class Kind : uint8_t { undefined, computed, input };
    Kind kind = Kind::undefined;
    int input = -1;  // Kind::input; or the input that a computed one is a view of
    bool complex = false;
    bool tracked = false;  // it has a gradient
    int place = -1;        // among the plan's outputs
  };
  std::vector<Output> outputs;

  // Gradients of leaves that the function reads: inputs of the plan, behind those of the function.
  std::vector<Handle<AutodiffNode>> leaves_read;
  std::vector<InputGuard> leaf_guards;
  // Leaves that must have no gradient when it begins.
  std::vector<Handle<AutodiffNode>> leaves_empty;
  // Leaves whose gradient the function drops first of all.
  std::vector<Handle<AutodiffNode>> leaves_reset;
  // What the function leaves in leaves: an output of the plan, or none (-1).
  struct LeafOutput {
    Handle<AutodiffNode> node;
    int place;
  };
  std::vector<LeafOutput> leaves_written;

  // ---- Backward; null when no result has a gradient

  std::unique_ptr<graph::Plan> backward;
  // Where gradients go: to an input, or to what the function holds.
  struct Target {
    int input = -1;
    Edge<Dispatch> edge;  // of what it holds
    int place = -1;       // among the plan's outputs; -1: none
  };
  std::vector<Target> targets;
  int saved_from = 0;  // place of the first value that the backward pass needs
  int saved = 0;
  bool freed = false;                 // results have a history that was gone when they came
  bool writes_outside = false;        // tensors that it holds, or inputs
  std::vector<ErasedTensor> watched;  // constants that the backward pass reads
  std::vector<const void*> read;      // addresses of all constants that the function reads

  std::vector<std::string> report;  // of the passes

  bool fits_leaves() const;
};

// Captures f(inputs). The results are those of the call, which was eager.
TensorList capture(const Compiled::Function& f, const TensorList& inputs,
                   const CompileOptions& options, Variant& variant);

// f's results by a replay. Throws graph::ValueChanged, with nothing done.
TensorList replay(const std::shared_ptr<Variant>& variant, const Compiled::Function& f,
                  const TensorList& inputs);

}  // namespace kiln::compiling
