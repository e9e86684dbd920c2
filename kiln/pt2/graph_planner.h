// From the nodes of a file's graphs to steps. Internal to kiln/pt2.
#pragma once

#include <set>
#include <string>
#include <unordered_map>

#include "kiln/pt2/program.h"

namespace kiln::pt2 {

class GraphPlanner {
 public:
  explicit GraphPlanner(Program& program) : program_(program) {}

  // The names of one graph; inner graphs see none of them.
  using Scope = std::unordered_map<std::string, int>;

  int slot() { return program_.slots++; }
  // A new slot for a name. Throws ValueError when it has one.
  int define(const std::string& name, Scope& scope);
  // What an argument's JSON says.
  Argument argument(const Json& json, const Scope& scope, int depth);
  void add_nodes(const Json& nodes, Scope& scope, Block& block, int depth);
  // Throws NotImplementedError when there were operators that Kiln lacks.
  void check_unknown() const;

  // Which slots nothing reads after a step, but for those of `kept`.
  static void find_dying(Block& block, const std::set<int>& kept);
  static void collect(const Argument& argument, std::set<int>& slots);

 private:
  Argument inner(const Json& graph, int depth);
  Argument list(const Json& items, const char* what, const Scope& scope,
                Argument (GraphPlanner::*one)(const Json&, const Scope&));
  Argument reference(const Json& name, const Scope& scope);
  Argument tensor(const Json& json, const Scope& scope);
  Argument optional_tensor(const Json& json, const Scope& scope);
  Argument number(const Json& json, const Scope& scope);
  Output output(const Json& json, Scope& scope);
  void add_node(const Json& node, size_t n, Scope& scope, Block& block, int depth);

  Program& program_;
  std::set<std::string> unknown_;
  std::string unknown_node_;  // the first
};

}  // namespace kiln::pt2
