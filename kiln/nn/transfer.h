// Moving state between models that do not quite agree: a part of it, under other names, in another
// layout. (load_state_dict is for models that do agree; kiln/io/model_store.h does this with
// files.)
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kiln/nn/key_remapper.h"
#include "kiln/nn/path_filter.h"
#include "kiln/nn/state_adapter.h"
#include "kiln/nn/state_dict.h"

namespace kiln::nn {

class Module;
namespace detail {
class StateSource;
}

struct TransferOptions {
  // The module's paths that take part; the others are skipped.
  PathFilter filter = {};
  // Applied to the names of what is loaded; when saving, to the names that are written.
  KeyRemapper remap = {};
  // Null: names and layouts are the module's (and PyTorch's).
  std::shared_ptr<const StateAdapter> adapter = nullptr;
  // Loads what fits, and reports what is missing or does not fit instead of throwing.
  bool allow_partial = false;
  // Whether there may be tensors that the module has no place for. They are reported.
  bool allow_unused = true;
};

// What became of each tensor, by the module's paths; `unused` by the names of what was loaded,
// after remapping.
struct ApplyResult {
  std::vector<std::string> applied;
  std::vector<std::string> skipped;  // by the filter
  std::vector<std::string> missing;
  std::vector<std::string> unused;
  std::vector<std::pair<std::string, std::string>> errors;  // path, what is wrong

  bool is_complete() const { return missing.empty() && errors.empty(); }
};
// A report of a line per kind, and one per error.
std::string to_string(const ApplyResult& result);

// The module's state, filtered and renamed. Tensors share memory with the module unless an adapter
// changed them.
StateDict collect(const Module& module, const TransferOptions& options = {});
// Gives the module what is in the dict. Throws ValueError, with the report, and changes nothing,
// when something is missing or does not fit (unless allow_partial), is unused (unless
// allow_unused), when two names become one, and when nothing at all is applied though something was
// meant to be.
ApplyResult apply(Module& module, const StateDict& state, const TransferOptions& options = {});

namespace detail {
ApplyResult apply_source(Module& module, const StateSource& source, const TransferOptions& options);
}  // namespace detail

}  // namespace kiln::nn
