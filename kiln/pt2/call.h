// What an operator sees of a node. Internal to kiln/pt2.
#pragma once

#include <complex>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <variant>

#include "kiln/kiln.h"

namespace kiln::pt2 {

struct Value;
using Values = std::vector<Value>;

// A value of a run or of a file.
struct Value {
  using List = std::shared_ptr<const Values>;
  std::variant<std::monostate, Tensor, Scalar, std::complex<double>, DType, std::string, List>
      held = {};

  bool is_none() const { return held.index() == 0; }
  const Tensor* tensor() const { return std::get_if<Tensor>(&held); }
  const Scalar* scalar() const { return std::get_if<Scalar>(&held); }
};

// The values of one run, by slot.
struct Frame {
  Values slots = {};
  Device device = {};      // where the inputs are; what the file says of devices means nothing here
  bool records = true;     // whether gradients were enabled when the run began
  int64_t inner_runs = 0;  // of graphs that nodes hold

  Value& operator[](int slot) { return slots[static_cast<size_t>(slot)]; }
};

struct Step;
struct Block;

class Call {
 public:
  Call(const Step& step, Frame& frame);

  // "aten.add.Tensor": several nodes' operators are one function.
  const std::string& target() const;
  bool is_overload(const char* name) const;

  // An argument by its name in the operator's schema. `has`: it is there, and not None.
  bool has(const char* name) const;
  Value value(const char* name) const;
  Tensor t(const char* name) const;
  Tensor maybe(const char* name) const;  // undefined when there is none
  Tensor x() const;                      // the first argument
  TensorList list(const char* name) const;
  TensorList maybe_list(const char* name) const;  // undefined tensors stand for None
  Scalar scalar(const char* name) const;
  Scalar scalar(const char* name, Scalar otherwise) const;
  std::optional<Scalar> maybe_scalar(const char* name) const;
  int64_t i(const char* name) const;
  int64_t i(const char* name, int64_t otherwise) const;
  std::optional<int64_t> maybe_i(const char* name) const;
  double f(const char* name) const;
  double f(const char* name, double otherwise) const;
  std::optional<double> maybe_f(const char* name) const;
  bool b(const char* name) const;
  bool b(const char* name, bool otherwise) const;
  std::string s(const char* name) const;
  std::string s(const char* name, const char* otherwise) const;
  Shape ints(const char* name) const;
  std::optional<Shape> maybe_ints(const char* name) const;
  std::optional<std::vector<double>> maybe_floats(const char* name) const;
  std::optional<DType> dtype(const char* name = "dtype") const;
  DType needed_dtype(const char* name = "dtype") const;
  // An argument that changes nothing in Kiln.
  void ignore(const char* name) const;

  // Of an operator of higher order, whose arguments have no names.
  size_t size() const;
  Value at(size_t i) const;
  bool has_block(size_t i) const;
  // More than a million runs of blocks in one of the program are taken for a loop that never ends.
  Values run_block(size_t i, Values inputs);

  // Options of a tensor that the operator makes. otherwise: its dtype when none is given.
  TensorOptions options(std::optional<DType> otherwise = {}) const;
  Device device() const;
  bool may_record() const;

  void out(Tensor x);
  void out(Scalar x);
  void out(Value x);
  void out_list(const std::vector<Tensor>& xs);
  template <class... T>
  void out(const std::tuple<T...>& xs) {
    std::apply([&](const T&... each) { (out(each), ...); }, xs);
  }
  void out(const std::pair<Tensor, Tensor>& xs) {
    out(xs.first);
    out(xs.second);
  }
  size_t outputs() const;
  // Whether anything reads a result.
  bool needs(size_t output) const;
  Values& results() { return results_; }

  // Throws NotImplementedError, which names an argument that the operator did not look at.
  void check_all_read() const;

  [[noreturn]] void refuse(const std::string& what) const;  // it is legal, and Kiln lacks it
  [[noreturn]] void fail(const std::string& what) const;

 private:
  const struct Argument* find(const char* name) const;
  Value resolved(const struct Argument& argument) const;
  [[noreturn]] void wrong(const char* name, const Value& value, const char* expected) const;

  const Step& step_;
  Frame& frame_;
  mutable uint64_t read_ = 0;  // a bit for each argument
  Values results_;
};

// How a target stands to the operator that computes it.
enum class Form : uint8_t {
  plain,
  in_place,  // the result is written over the first argument
  copy,      // of a view
};

// Several overloads may be one function, which reads what arguments there are.
struct Operator {
  const char* name;       // "add"
  const char* overloads;  // "Tensor Scalar"; "default"
  void (*run)(Call&);
};

// By families.
std::span<const Operator> unary_operators();
std::span<const Operator> binary_operators();
std::span<const Operator> activation_operators();
std::span<const Operator> creation_operators();
std::span<const Operator> view_operators();
std::span<const Operator> rearranging_operators();
std::span<const Operator> index_operators();
std::span<const Operator> reduction_operators();
std::span<const Operator> sorting_operators();
std::span<const Operator> product_operators();
std::span<const Operator> linalg_operators();
std::span<const Operator> convolution_operators();
std::span<const Operator> pooling_operators();
std::span<const Operator> norm_operators();
std::span<const Operator> resampling_operators();
std::span<const Operator> loss_operators();
std::span<const Operator> embedding_operators();
std::span<const Operator> recurrent_operators();
std::span<const Operator> random_operators();
std::span<const Operator> special_operators();
std::span<const Operator> spectrum_operators();
std::span<const Operator> conversion_operators();
// Of Python's numbers, with targets of their own: "_operator.add", "torch.sym_max".
std::span<const Operator> number_operators();
// torch.ops.higher_order.
std::span<const Operator> control_operators();

}  // namespace kiln::pt2
