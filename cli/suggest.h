// What somebody may have meant who typed a word that is not there.
#pragma once

#include <string>
#include <vector>

namespace kiln::cli {

// The candidate that differs least from `word`, by letters that are missing, too many, exchanged or
// swapped; empty when none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

// ", did you mean 'digits'?", or nothing.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace kiln::cli
