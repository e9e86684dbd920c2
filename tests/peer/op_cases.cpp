// The table of op cases for other programs: kiln_op_cases dump FOLDER writes every case's inputs,
// results and gradients; kiln_op_cases inputs NUMBER FILE the large inputs of one case.
//
// FOLDER/cases.json lists the cases; FOLDER/cases.safetensors holds "3/float32/in0",
// "3/float32/out1", and for cases with derivatives "3/float64/weight0" (of each floating point
// result) and "3/float64/grad0" (of sum(weight * result) with respect to each differentiated
// input).
#include <cstdio>
#include <cstdlib>
#include <fstream>
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
    out.add("peer_why", c.peer_why).add("shape_only_why", c.shape_only_why);
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
    if (c.derivatives == 0 || c.dtype_list[0] != f64 || !c.shape_only_why.empty()) return false;
    Tensors inputs = make_inputs(c, c.inputs, f64);
    Tensors leaves;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (c.inputs[i].kind != Input::Kind::real) continue;
      inputs[i].requires_grad_();
      leaves.push_back(inputs[i]);
    }
    if (leaves.empty()) return false;
    Tensor sum;
    const Tensors results = c.call(inputs);
    for (size_t i = 0; i < results.size(); ++i) {
      if (!is_floating_point(results[i].dtype())) continue;
      const Tensor weight = linspaced(results[i].shape());
      add(key(c, f64, "weight", i), weight);
      const Tensor part = (results[i].to(f64) * weight).sum();
      sum = sum.defined() ? sum + part : part;
    }
    if (!sum.defined() || !sum.requires_grad()) return false;
    const auto grads = grad(std::span<const Tensor>(&sum, 1), leaves, {.allow_unused = true});
    for (size_t i = 0; i < grads.size(); ++i) {
      add(key(c, f64, "grad", i), grads[i].defined() ? grads[i] : zeros(leaves[i].shape(), {f64}));
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

void write_inputs(size_t number, const std::string& path) {
  if (number >= cases().size()) throw IndexError("no case " + std::to_string(number));
  const Case& c = cases()[number];
  const DType dtype = c.dtype_list.size() > 1 && c.dtype_list[0] == f64 ? f32 : c.dtype_list[0];
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
    } else {
      std::fprintf(stderr, "usage: %s dump FOLDER | inputs NUMBER FILE\n", argv[0]);
      return 2;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kiln_op_cases: %s\n", error.what());
    return 1;
  }
  return 0;
}
