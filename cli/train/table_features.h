// Columns of a table as the numbers that a model takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kiln/core/json.h"
#include "kiln/data/table.h"

namespace kiln::cli {

// One column as features: a number, or a flag for each word that the training rows have.
struct TableFeature {
  std::string name;
  std::vector<std::string> words;
};

// How many numbers they are.
int64_t width_of(const std::vector<TableFeature>& features);
// f32 [N, K]. A word that training rows do not have is no flag. Throws KeyError, TypeError.
Tensor features_of(const data::Table& table, const std::vector<TableFeature>& features);

// [{"name": .., "words": [..]}, ..], and back. Throws ValueError for anything else.
Json json_of(const std::vector<TableFeature>& features);
std::vector<TableFeature> table_features(const Json& json);

}  // namespace kiln::cli
