// The table of op cases for other programs: kiln_op_cases dump FOLDER writes every case's inputs,
// results and gradients; kiln_op_cases inputs NUMBER FILE the large inputs of one case;
// kiln_op_cases page prints docs/tensor-ops.md, and page FILE fails where that is not what the file
// holds.
//
// FOLDER/cases.json lists the cases; FOLDER/cases.safetensors holds "3/float32/in0",
// "3/float32/out1", and for cases with derivatives "3/float64/weight0" (of each floating point
// result) and "3/float64/grad0" (of sum(weight * result) with respect to each differentiated
// input). Complex results have weights for both parts, [.., 2].
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "kiln/core/json.h"
#include "kiln/io/safetensors.h"
#include "tests/ops/case.h"

namespace kiln::ops {
namespace {

class Dump {
 public:
  void add(const std::string& name, const Tensor& x) { tensors_.push_back({name, x.to_data()}); }

  Json case_of(const Case& c) {
    Json out;
    out.add("number", c.number).add("name", c.name).add("python", c.python);
    Json dtypes;
    Json counts;
    for (const DType dtype : c.dtype_list) {
      dtypes.add(to_string(dtype));
      counts.add(run(c, dtype));
    }
    out.add("dtypes", dtypes).add("results", counts);
    out.add("inputs", kinds_of(c.inputs)).add("big_inputs", kinds_of(c.big_inputs));
    out.add("derivatives", c.derivatives).add("derivatives_why", c.derivatives_why);
    out.add("peer", c.peer).add("peer_why", c.peer_why).add("shape_only_why", c.shape_only_why);
    out.add("rtol_factor", c.rtol_factor).add("big", !c.big_inputs.empty());
    out.add("gradients", gradients(c));
    return out;
  }

  void write(const std::string& path) const { io::save_safetensors(path, tensors_); }

 private:
  static Json kinds_of(const std::vector<Input>& inputs) {
    static const char* const names[] = {"real", "constant", "index", "mask", "complex"};
    Json kinds = Json(Json::Array{});
    for (const Input& input : inputs) kinds.add(names[static_cast<int>(input.kind)]);
    return kinds;
  }
  static std::string key(const Case& c, DType dtype, const char* what, size_t i) {
    return std::to_string(c.number) + "/" + to_string(dtype) + "/" + what + std::to_string(i);
  }

  // The number of results.
  int64_t run(const Case& c, DType dtype) {
    const Tensors inputs = make_inputs(c, c.inputs, dtype);
    for (size_t i = 0; i < inputs.size(); ++i) add(key(c, dtype, "in", i), inputs[i]);
    const Tensors results = c.call(inputs);
    for (size_t i = 0; i < results.size(); ++i) add(key(c, dtype, "out", i), results[i]);
    return static_cast<int64_t>(results.size());
  }

  // Whether there are any.
  bool gradients(const Case& c) {
    const DType dtype = c.dtype_list[0];
    if (c.derivatives == 0 || (dtype != f64 && dtype != c128) || !c.shape_only_why.empty())
      return false;
    Tensors inputs = make_inputs(c, c.inputs, dtype);
    Tensors leaves;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Input::Kind kind = c.inputs[i].kind;
      if (kind != Input::Kind::real && kind != Input::Kind::complex) continue;
      inputs[i].requires_grad_();
      leaves.push_back(inputs[i]);
    }
    if (leaves.empty()) return false;
    Tensor sum;
    const Tensors results = c.call(inputs);
    for (size_t i = 0; i < results.size(); ++i) {
      const Tensor y = is_complex(results[i]) ? view_as_real(results[i]) : results[i];
      if (!is_floating_point(y.dtype())) continue;
      const Tensor weight = linspaced(y.shape());
      add(key(c, dtype, "weight", i), weight);
      const Tensor part = (y.to(f64) * weight).sum();
      sum = sum.defined() ? sum + part : part;
    }
    if (!sum.defined() || !sum.requires_grad()) return false;
    const auto grads = grad(std::span<const Tensor>(&sum, 1), leaves, {.allow_unused = true});
    for (size_t i = 0; i < grads.size(); ++i) {
      add(key(c, dtype, "grad", i), grads[i].defined() ? grads[i] : zeros_like(leaves[i]));
    }
    return true;
  }

  // Numbers in [-1, 1) without order.
  static Tensor linspaced(const Shape& shape) {
    TensorData data(shape, f64);
    auto values = data.as_mutable<double>();
    for (size_t i = 0; i < values.size(); ++i) {
      const auto words = philox(7, i);
      values[i] = 2 * uniform_f64(words[0], words[1]) - 1;
    }
    return Tensor(data);
  }

  io::NamedTensors tensors_;
};

void dump(const std::string& folder) {
  Dump all;
  Json list = Json(Json::Array{});
  for (const Case& c : cases()) {
    try {
      list.add(all.case_of(c));
    } catch (const std::exception& error) {
      throw ValueError(c.name + ": " + c.python + ": " + error.what());
    }
  }
  all.write(folder + "/cases.safetensors");
  std::ofstream(folder + "/cases.json") << encode_json(list);
}

// ---- The page docs/tensor-ops.md

const char kPageHead[] = R"(# Every op

This page lists every public op under its name in Python, which is PyTorch's. The counts are those of
the cases that the tests run (`tests/ops/`). In C++ ops are in namespace `kiln`, those of
`nn.functional` in `kiln::functional`, and `linalg`, `fft` and `special` in namespaces of these names.
All ops run on both backends, `cpu` and `reference`. The tests compare the two in every listed dtype.

- **dtypes**: the dtypes of the cases. f: float64, float32, float16, bfloat16; d: only float64 and
  float32; c: complex128, complex64; i: all integers; b: bool.
- **derivatives**: `any`: the first and second derivatives were compared with finite differences in
  double precision. `first`: only the first; the notes say why. `-`: there is no derivative to compare.
- **notes**: the tests compare values, dtypes and gradients with PyTorch 2.13.0. The notes say what
  differs.

`./script/docs --ops` writes this page from the cases. A test fails if it is stale.

)";

struct Summary {
  std::set<DType> dtypes;
  int derivatives = 0;
  bool differentiable = false;
  std::set<std::string> notes;
  int cases = 0;
};

bool all_of(const std::set<DType>& dtypes, const DTypes& list) {
  return std::all_of(list.begin(), list.end(), [&](DType t) { return dtypes.contains(t); });
}

std::string letters(const std::set<DType>& dtypes) {
  std::string out;
  const auto add = [&](std::string_view text) {
    if (!out.empty()) out += ' ';
    out += text;
  };
  const auto add_each = [&](const DTypes& list) {
    for (const DType t : list) {
      if (dtypes.contains(t)) add(name_of(t));
    }
  };
  if (all_of(dtypes, kFloats)) {
    add("f");
  } else if (all_of(dtypes, kDoubles)) {
    add("d");
  } else {
    add_each(kFloats);
  }
  if (all_of(dtypes, kComplex)) add("c");
  if (all_of(dtypes, kInts)) {
    add("i");
  } else {
    add_each(kInts);
  }
  if (dtypes.contains(bool_)) add("b");
  return out;
}

std::string derivatives_of(const Summary& s) {
  if (!s.differentiable || s.derivatives == 0) return "-";
  return s.derivatives == 1 ? "first" : "any";
}

std::string page() {
  std::map<std::string, Summary> ops;
  for (const Case& c : cases()) {
    Summary& s = ops[c.name];
    ++s.cases;
    s.dtypes.insert(c.dtype_list.begin(), c.dtype_list.end());
    s.derivatives = std::max(s.derivatives, c.derivatives);
    for (const Input& input : c.inputs) {
      s.differentiable =
          s.differentiable || input.kind == Input::Kind::real || input.kind == Input::Kind::complex;
    }
    if (c.derivatives == 1) s.notes.insert("first derivatives alone: " + c.derivatives_why);
    if (!c.peer.empty()) s.notes.insert("not in PyTorch: `" + c.peer + "`");
    if (!c.peer_why.empty()) s.notes.insert("not PyTorch's: " + c.peer_why);
    if (!c.shape_only_why.empty()) {
      s.notes.insert("shapes and dtypes compared: " + c.shape_only_why);
    }
  }
  std::string out = kPageHead;
  out += std::to_string(ops.size()) + " ops, " + std::to_string(cases().size()) + " cases.\n\n";
  out += "| op | dtypes | derivatives | cases | notes |\n|---|---|---|---|---|\n";
  for (const auto& [name, s] : ops) {
    out += "| `" + name + "` | " + letters(s.dtypes) + " | " + derivatives_of(s) + " | " +
           std::to_string(s.cases) + " | ";
    const char* separator = "";
    for (const std::string& note : s.notes) {
      out += separator + note;
      separator = "; ";
    }
    out += " |\n";
  }
  return out;
}

int check_page(const std::string& path) {
  std::ifstream file(path);
  const std::string there((std::istreambuf_iterator<char>(file)), {});
  if (there == page()) return 0;
  std::fprintf(stderr, "%s is stale; ./script/docs --ops writes it\n", path.c_str());
  return 1;
}

void write_inputs(size_t number, const std::string& path) {
  if (number >= cases().size()) throw IndexError("no case " + std::to_string(number));
  const Case& c = cases()[number];
  DType dtype = c.dtype_list[0];
  if (dtype == f64 && c.dtype_list.size() > 1) dtype = f32;
  if (dtype == DType::c128 && c.dtype_list.size() > 1) dtype = DType::c64;
  io::NamedTensors tensors;
  for (const Tensor& x : make_inputs(c, c.big_inputs, dtype)) {
    tensors.push_back({std::to_string(tensors.size()), x.to_data()});
  }
  io::save_safetensors(path, tensors);
}

}  // namespace
}  // namespace kiln::ops

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  try {
    if (command == "dump" && argc == 3) {
      kiln::ops::dump(argv[2]);
    } else if (command == "inputs" && argc == 4) {
      kiln::ops::write_inputs(std::strtoull(argv[2], nullptr, 10), argv[3]);
    } else if (command == "page" && argc == 2) {
      std::fputs(kiln::ops::page().c_str(), stdout);
    } else if (command == "page" && argc == 3) {
      return kiln::ops::check_page(argv[2]);
    } else {
      std::fprintf(stderr, "usage: %s dump FOLDER | inputs NUMBER FILE | page [FILE]\n", argv[0]);
      return 2;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kiln_op_cases: %s\n", error.what());
    return 1;
  }
  return 0;
}
