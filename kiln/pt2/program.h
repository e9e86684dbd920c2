// A file's program as steps that can run: names are slots, and a step may hold blocks of steps.
// Internal to kiln/pt2.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kiln/core/json.h"
#include "kiln/pt2/call.h"
#include "kiln/pt2/model.h"
#include "kiln/pt2/sizes.h"

namespace kiln::pt2 {

struct Block;

// What a node gives an operator: a value, a slot, or a list of these.
struct Argument {
  std::string name = {};  // of the operator's schema; empty for operators of higher order
  int slot = -1;
  Value fixed = {};                  // when slot is -1 and it is no list
  bool is_list = false;              // of slots, some of them at least
  std::vector<Argument> items = {};  // of the list
  std::shared_ptr<const Block> block = nullptr;
};

// Where results go: slots of tensors and numbers; -1 for what nothing reads.
struct Output {
  std::vector<int> slots;
  bool is_list = false;  // one result, a list
};

struct Step {
  const Operator* op = nullptr;
  Form form = Form::plain;
  std::string target;  // "aten.add.Tensor"
  std::vector<Argument> arguments;
  std::vector<Output> outputs;
  std::vector<int> dying;  // slots that nothing reads afterwards
  std::string label;       // "node 'add_1' (aten.add.Tensor)"
};

struct Block {
  std::vector<Step> steps;
  std::vector<int> inputs;
  std::vector<Argument> outputs;
};

struct Program {
  struct Input {
    std::string name;
    int slot = -1;  // -1: a constant
    bool is_tensor = false;
    Value constant = {};
    DType dtype = DType::f32;
    DeclaredShape shape = {};
  };
  struct Output {
    std::string name;
    Argument value;
  };
  // After a run the value of a slot is written over an input or a held tensor.
  struct Mutation {
    int slot = -1;
    bool is_held = false;
    size_t target = 0;
  };

  int slots = 0;
  Block main;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<Held> held;
  std::vector<int> held_slots;
  std::vector<Mutation> mutations;
  std::map<std::string, Range> ranges;
  Tree input_tree, output_tree;
  std::vector<std::string> argument_names;
  std::vector<std::pair<std::string, std::string>> modules;
};

// What a file says. Throws ValueError or NotImplementedError, which name the node.
void plan(Program& program, const Json& file, std::map<std::string, Tensor> weights,
          std::map<std::string, Tensor> constants);

// Parts of plan.
struct Target {
  const Operator* op = nullptr;
  Form form = Form::plain;
};
// The operator of a target ("torch.ops.aten.add.Tensor"); null when there is none.
Target find_operator(const std::string& target);
// The graph as steps. Throws one NotImplementedError for all operators that Kiln lacks.
class GraphPlanner;
Tree read_tree(const Json& spec, const Json* fields);

// Runs the steps of a block on the frame, in which its inputs stand already. Throws what names the
// node.
void run_block(const Block& block, Frame& frame);
Value value_of(const Argument& argument, Frame& frame);

}  // namespace kiln::pt2
