#include "kiln/onnx/write/free_sizes.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>

#include "kiln/graph/file/free_sizes.h"
#include "kiln/onnx/write/writer.h"

namespace kiln::onnx {

namespace {

using graph::SizeExpression;
using graph::Sizes;

bool are_equal(const wire::Attribute& a, const wire::Attribute& b) {
  return a.name == b.name && a.type == b.type && a.f == b.f && a.i == b.i && a.s == b.s &&
         a.ints == b.ints && a.floats == b.floats && a.strings == b.strings;
}

template <class T>
std::vector<T> values_of(const wire::Tensor& t) {
  std::vector<T> out(t.raw_data.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), t.raw_data.data(), out.size() * sizeof(T));
  return out;
}

class FreeModel {
 public:
  explicit FreeModel(const GraphModel& model)
      : model_(model),
        names_(model.free_dims()),
        samples_(graph::sample_sizes(model.example_sizes(), 0)) {}

  wire::Model run() {
    for (int attempt = 0; files_.empty(); ++attempt) {
      samples_ = graph::sample_sizes(model_.example_sizes(), attempt);
      try {
        for (const Sizes& sizes : samples_) {
          const graph::Graph graph = model_.graph_at(sizes);
          files_.push_back(Writer(graph, model_.output_names(), true, !files_.empty()).run());
        }
      } catch (const ValueError&) {  // sizes that a node does not take
        files_.clear();
        if (attempt + 1 == graph::kSampleAttempts) throw;
      }
    }
    check_nodes();
    wire::Graph& body = files_[0].graph[0];
    for (size_t i = 0; i < body.initializer.size(); ++i) add_initializer(i);
    body.initializer = std::move(kept_);
    body.node.insert(body.node.begin(), std::make_move_iterator(sizes_.begin()),
                     std::make_move_iterator(sizes_.end()));
    for (wire::Node& node : body.node) {
      for (std::string& name : node.input) {
        const auto same = same_.find(name);
        if (same != same_.end()) name = same->second;
      }
    }
    name_dims(&wire::Graph::input);
    name_dims(&wire::Graph::output);
    return std::move(files_[0]);
  }

 private:
  const wire::Graph& file(size_t k) const { return files_[k].graph[0]; }

  [[noreturn]] void refuse(const std::string& where, const char* what) const {
    throw_error<NotImplementedError>("onnx: ", where, ": ", what,
                                     " depends on the free dims; expected it to be the same");
  }
  std::string label(const wire::Node& node) const {
    return concat("node '", node.name, "' (", node.op_type, ")");
  }
  std::string reader_of(const std::string& name) const {
    for (const wire::Node& node : file(0).node) {
      if (std::ranges::count(node.input, name) != 0) return label(node);
    }
    return concat("constant '", name, "'");
  }

  void check_nodes() const {
    for (size_t k = 1; k < files_.size(); ++k) {
      const size_t count = std::min(file(0).node.size(), file(k).node.size());
      for (size_t n = 0; n < count; ++n) {
        const wire::Node &a = file(0).node[n], &b = file(k).node[n];
        if (a.op_type != b.op_type || a.input != b.input || a.output != b.output) {
          refuse(label(a), "which operators stand for a row");
        }
        if (!std::ranges::equal(a.attribute, b.attribute, are_equal)) {
          refuse(label(a), "an attribute");
        }
      }
      if (file(0).node.size() != file(k).node.size() ||
          file(0).initializer.size() != file(k).initializer.size()) {
        refuse("the graph", "which operators stand for a row");
      }
    }
  }

  // ---- Constants, and what is computed in their place

  void add_initializer(size_t i) {
    wire::Tensor& first = files_[0].graph[0].initializer[i];
    bool same = true, same_dims = true;
    for (size_t k = 1; k < files_.size(); ++k) {
      const wire::Tensor& other = file(k).initializer[i];
      same_dims = same_dims && other.dims == first.dims && other.name == first.name;
      same = same && (other.raw_data == first.raw_data || other.raw_data.empty());
    }
    if (!same_dims) refuse(reader_of(first.name), "the shape of a constant");
    if (!same) return compute(i, first);
    if (first.raw_data.size() <= 1024) {
      std::string key = concat(first.data_type, " ", Shape(first.dims));
      key += first.raw_data;
      const auto [known, is_new] = by_bytes_.try_emplace(key, first.name);
      if (!is_new) {
        same_[first.name] = known->second;
        return;
      }
    }
    kept_.push_back(std::move(first));
  }

  void compute(size_t i, const wire::Tensor& first) {
    if (first.dims.size() > 1) refuse(reader_of(first.name), "the values of a constant");
    std::string vector;
    if (first.data_type == data_type_of(DType::i64)) {
      vector = integers(i, first);
    } else {
      vector = number(i, first);
    }
    if (!first.dims.empty()) {
      add("Identity", {vector}, first.name);
    } else {
      add("Squeeze", {vector}, first.name);
    }
  }

  std::string integers(size_t i, const wire::Tensor& first) {
    const size_t count = first.raw_data.size() / sizeof(int64_t);
    std::vector<std::string> parts;
    for (size_t at = 0; at < count; ++at) {
      std::vector<int64_t> values;
      for (size_t k = 0; k < files_.size(); ++k) {
        values.push_back(values_of<int64_t>(file(k).initializer[i])[at]);
      }
      const auto e = graph::fitted(values, samples_);
      if (!e) refuse(reader_of(first.name), "a size that is no sum of products of them");
      parts.push_back(expression(*e));
    }
    return parts.size() == 1 ? parts[0] : add("Concat", parts, "", 0);
  }

  std::string number(size_t i, const wire::Tensor& first) {
    std::vector<double> values;
    for (size_t k = 0; k < files_.size(); ++k) {
      const wire::Tensor& t = file(k).initializer[i];
      if (t.data_type == data_type_of(DType::f32) && t.raw_data.size() == 4) {
        values.push_back(static_cast<double>(values_of<float>(t)[0]));
      } else if (t.data_type == data_type_of(DType::f64) && t.raw_data.size() == 8) {
        values.push_back(values_of<double>(t)[0]);
      } else {
        refuse(reader_of(first.name), "the values of a constant");
      }
    }
    bool reciprocal = false;
    const auto e = graph::fitted_number(values, samples_, reciprocal);
    if (!e) refuse(reader_of(first.name), "a number that is no sum of products of them");
    std::string x = expression(*e);
    const std::string real = add("Cast", {x}, "");
    wire::Attribute to;
    to.name = "to";
    to.type = 2;
    to.i = first.data_type;
    sizes_.back().attribute.push_back(to);
    return reciprocal ? add("Reciprocal", {real}, "") : real;
  }

  // A vector of one number.
  std::string expression(const SizeExpression& e) {
    const std::string key = e.str(names_);
    const auto known = expressions_.find(key);
    if (known != expressions_.end()) return known->second;
    std::string sum;
    for (const SizeExpression::Term& term : e.terms) {
      std::string product;
      if (term.factor != 1 || term.sizes.empty()) product = constant(term.factor);
      for (const int s : term.sizes) {
        const std::string size = size_of_dim(static_cast<size_t>(s));
        product = product.empty() ? size : add("Mul", {product, size}, "");
      }
      sum = sum.empty() ? product : add("Add", {sum, product}, "");
    }
    if (sum.empty()) sum = constant(0);
    if (e.over != 1) sum = add("Div", {sum, constant(e.over)}, "");
    return expressions_[key] = sum;
  }
  std::string constant(int64_t value) {
    const auto [known, is_new] = constants_.try_emplace(value, concat("size.const_", value));
    if (is_new) {
      wire::Tensor& t = kept_.emplace_back();
      t.name = known->second;
      t.dims = {1};
      t.data_type = data_type_of(DType::i64);
      t.raw_data.assign(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return known->second;
  }
  std::string size_of_dim(size_t which) {
    const auto [known, is_new] = dims_.try_emplace(which);
    if (!is_new) return known->second;
    for (size_t i = 0; i < model_.graph().inputs.size(); ++i) {
      const std::vector<std::string> dims = model_.free_dims_of(i);
      const auto at = std::ranges::find(dims, names_[which]) - dims.begin();
      if (at == static_cast<int64_t>(dims.size())) continue;
      known->second = add("Shape", {file(0).input[i].name}, "");
      for (const auto& [name, value] : {std::pair("start", at), std::pair("end", at + 1)}) {
        wire::Attribute& a = sizes_.back().attribute.emplace_back();
        a.name = name;
        a.type = 2;
        a.i = value;
      }
      break;
    }
    return known->second;
  }

  // A node before all others; output: "" for a name of its own.
  std::string add(const char* op, std::vector<std::string> inputs, const std::string& output,
                  int64_t axis = -1) {
    wire::Node& node = sizes_.emplace_back();
    node.op_type = op;
    node.name = concat("size.", op, "_", sizes_.size());
    node.input = std::move(inputs);
    node.output = {output.empty() ? node.name : output};
    if (axis >= 0) {
      wire::Attribute& a = node.attribute.emplace_back();
      a.name = "axis";
      a.type = 2;
      a.i = axis;
    }
    return node.output[0];
  }

  // ---- Inputs and outputs

  void name_dims(std::vector<wire::ValueInfo> wire::Graph::*list) {
    auto& infos = files_[0].graph[0].*list;
    const auto dims_at = [&](size_t k, size_t i) -> std::vector<wire::Dimension>& {
      return (files_[k].graph[0].*list)[i].type[0].tensor_type[0].shape[0].dim;
    };
    for (size_t i = 0; i < infos.size(); ++i) {
      for (size_t d = 0; d < dims_at(0, i).size(); ++d) {
        std::vector<int64_t> values;
        for (size_t k = 0; k < files_.size(); ++k) values.push_back(dims_at(k, i)[d].value);
        const auto e = graph::fitted(values, samples_);
        if (e && e->is_constant()) continue;
        wire::Dimension& dim = dims_at(0, i)[d];
        dim = {0, e ? e->str(names_) : concat(infos[i].name, "_dim_", d)};
      }
    }
  }

  const GraphModel& model_;
  std::vector<std::string> names_;
  std::vector<Sizes> samples_;
  std::vector<wire::Model> files_;
  std::vector<wire::Tensor> kept_;
  std::vector<wire::Node> sizes_;
  std::map<std::string, std::string> by_bytes_, same_, expressions_;
  std::map<int64_t, std::string> constants_;
  std::map<size_t, std::string> dims_;
};

}  // namespace

wire::Model with_free_sizes(const GraphModel& model) { return FreeModel(model).run(); }

}  // namespace kiln::onnx
