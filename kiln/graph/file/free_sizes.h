// Sizes that a graph leaves open, such as that of the batch.
//
// Note [Free sizes]
// A capture knows numbers alone: a reshape to [6, 7] does not say that 6 is twice the batch. So a
// function is captured at several sizes, and the graphs are compared as JSON: they must be the
// same but for integers, and each integer that differs must be an expression of the free sizes, a
// sum of products of them. What comes of it is a graph in which such integers are objects,
//
//   {"free": [[2, "batch"], [1]], "over": 1}         (2 batch + 1) / 1
//   {"repeat": .., "times": ..}                      a list of equal items
//
// and at_sizes() makes the graph for given sizes of it, which is read and checked as any graph from
// a file is.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kiln/core/json.h"

namespace kiln::graph {

// One number for each free size, in order.
using Sizes = std::vector<int64_t>;

// (sum of factor times product of sizes) / over.
struct SizeExpression {
  struct Term {
    int64_t factor = 0;
    std::vector<int> sizes;  // their places; one may stand there twice
  };
  std::vector<Term> terms;
  int64_t over = 1;

  bool is_constant() const;
  // The place of the size that it is; -1 when it is another expression.
  int single() const;
  // Throws ValueError when it is no integer, or none of 62 bits.
  int64_t at(const Sizes& sizes) const;
  // "2 batch + 1".
  std::string str(std::span<const std::string> names) const;
};

// The expression that gives these values at these samples; none when there is none of at most three
// terms and products of three. The values of a reciprocal are 1 / v.
std::optional<SizeExpression> fitted(std::span<const int64_t> values,
                                     std::span<const Sizes> samples);
std::optional<SizeExpression> fitted_number(std::span<const double> values,
                                            std::span<const Sizes> samples, bool& reciprocal);

// Sizes to capture at: enough to tell expressions apart. `attempt`: another set, where one met
// sizes at which a function does something else.
constexpr int kSampleAttempts = 3;
std::vector<Sizes> sample_sizes(const Sizes& example, int attempt);

// Graphs at these sizes as one. Throws ValueError, which names the node, its row and the argument.
Json unified(std::span<const Json> graphs, std::span<const Sizes> samples,
             std::span<const std::string> names);
// The graph for these sizes. Throws ValueError for what is no expression of the names.
Json at_sizes(const Json& graph, std::span<const std::string> names, const Sizes& sizes);
// An expression in JSON; none when it is none.
std::optional<SizeExpression> expression_of(const Json& json, std::span<const std::string> names);

}  // namespace kiln::graph
