// A file's graphs as steps that can run: names are slots, functions are inlined, and a step may
// hold blocks of steps (If, Loop, Scan). Internal to kiln/onnx.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kiln/onnx/read/call.h"
#include "kiln/onnx/read/external.h"

namespace kiln::onnx {

struct Block;

struct Step {
  const wire::Node* node = nullptr;
  const Operator* op = nullptr;
  int version = 0;          // of the operator set
  std::vector<int> inputs;  // slots; -1: absent
  std::vector<int> outputs;
  std::vector<std::pair<std::string, std::unique_ptr<Block>>> blocks;  // by attribute
  std::string label;                                                   // "node 3 'x' (Loop)"
};

// The slots of all blocks are those of one frame: a value of a graph is seen by the graphs in it.
struct Block {
  std::vector<Step> steps;
  std::vector<int> inputs, outputs;
  std::vector<std::pair<int, Tensor>> constants;
  std::vector<const wire::ValueInfo*> declared;  // what the file says of the outputs
};

struct Program {
  wire::Model file;
  std::deque<wire::Node> made;  // nodes of functions, with the attributes of a call
  int slots = 0;
  Block main;
  std::vector<std::string> inputs, outputs;
  std::vector<std::pair<std::string, Tensor>> parameters;
  std::vector<int> parameter_slots;
};

// Fills in everything but `file`, from it. Throws ValueError or NotImplementedError, which name the
// node.
void plan(Program& program, ExternalData& data);

// Runs the steps of a block on the frame, in which its inputs stand already. Throws what names the
// node.
void run_block(const Block& block, Frame& frame);

// Every operator that is there, by its name: "Add", "com.microsoft.FusedMatMul".
const Operator* find_operator(const std::string& domain, const std::string& name);

}  // namespace kiln::onnx
