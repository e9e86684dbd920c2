// A model file that runs, whichever its kind: for `run`, `bench model`, `inspect` and `convert`.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kiln/compile/graph_model.h"

namespace kiln::cli {

enum class ModelKind { none, graph, onnx, pt2 };

// By what is in the file. Throws IoError, which begins with `op`, when it cannot be read.
ModelKind kind_of(const char* op, const std::string& path);

class Runnable {
 public:
  struct Dim {
    int64_t size = -1;      // -1: free
    std::string name = {};  // of a free one
  };
  // An input or an output, as far as the file describes it.
  struct Port {
    std::string name;
    std::string dtype = {};  // "": unknown
    bool has_dims = true;    // false: unknown
    std::vector<Dim> dims = {};
    std::string shape_text() const;  // "[batch, 3]"; "" when it is unknown
  };
  using Sizes = std::map<std::string, int64_t>;

  virtual ~Runnable() = default;

  virtual std::string kind() const = 0;  // "ONNX, operator set 20"
  virtual std::vector<Port> inputs() const = 0;
  virtual std::vector<Port> outputs() const = 0;
  virtual std::vector<std::string> nodes() const = 0;  // names of operators or rows
  virtual std::string cost() const { return ""; }      // of a call: "12 Mflop"; "": unknown
  virtual std::vector<std::pair<std::string, Tensor>> tensors() const = 0;

  // The free sizes, each with one that it may have.
  virtual Sizes example_sizes() const = 0;
  // Inputs of these sizes, of no meaning: normal numbers; integers are 0, which every table of rows
  // has. Throws UsageError where the file does not say enough.
  virtual TensorList examples(const Sizes& sizes) const = 0;

  // The outputs, by name.
  virtual std::vector<std::pair<std::string, Tensor>> run(const TensorList& inputs) const = 0;
  // As a graph: of inputs like these and, with `free`, of all sizes.
  virtual GraphModel graph(const TensorList& inputs, bool free) const = 0;
};

// Throws IoError, which begins with `op`, for a file of no kind, and says which there are; what the
// kind's reader throws. A damaged file is reported by the reader that the name's ending asks for.
std::unique_ptr<Runnable> open_runnable(const char* op, const std::string& path);

// The model's free sizes as --size gives them ("batch=8"), or one that each may have.
Runnable::Sizes sizes_of(const Runnable& model, const std::vector<std::string>& texts);

}  // namespace kiln::cli
