// The pickle machine: reads the opcodes of Python's pickle protocols 2 to 5 and makes plain
// objects. It has no way to run anything: a name that is not on TorchObjects' list is an IoError.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "kiln/io/pickle_input.h"
#include "kiln/io/pickle_node.h"
#include "kiln/io/torch_objects.h"

namespace kiln::io::detail {

class PickleMachine {
 public:
  // All must outlive the machine.
  PickleMachine(PickleInput& input, PickleArena& arena, TorchObjects& objects)
      : input_(input), arena_(arena), objects_(objects) {}

  // Reads one pickle, up to its STOP. Throws IoError.
  NodeRef run();

 private:
  bool step(uint8_t opcode);  // false at STOP
  bool step_value(uint8_t opcode);
  bool step_container(uint8_t opcode);
  bool step_object(uint8_t opcode);

  NodeRef pop();
  NodeRef& top();
  void push(NodeRef ref) {
    arena_.grow(stack_, 1);
    stack_.push_back(ref);
  }
  void push_node(Node node, uint64_t bytes = 0) { push(arena_.add(std::move(node), bytes)); }
  // An object with items, which were charged when they were taken from the stack.
  template <class Container>
  void push_items(Container container) {
    push_node(std::move(container), kAllocation);
  }
  std::vector<NodeRef> pop_mark();
  void push_tuple(size_t items);
  void push_long(uint64_t bytes);
  void push_text(uint64_t bytes);
  void push_python2_text(uint64_t bytes);
  void push_bytes(uint64_t bytes);
  void remember(uint64_t place);
  void recall(uint64_t place);
  void append(const std::vector<NodeRef>& items);
  void set_items(const std::vector<NodeRef>& items);
  void build();
  NodeRef call(NodeRef function, NodeRef arguments);
  std::string text_of(NodeRef ref, const char* what);
  [[noreturn]] void refuse(const char* opcode, const std::string& what);

  static constexpr uint64_t kAllocation = 32;  // what the smallest one costs

  PickleInput& input_;
  PickleArena& arena_;
  TorchObjects& objects_;
  std::vector<NodeRef> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::unordered_map<uint64_t, NodeRef> memo_;
};

}  // namespace kiln::io::detail
