#include "kiln/backend/conformance/checks.h"

#include <cstring>
#include <functional>

namespace kiln::conformance {
namespace {

TensorData counting(const Shape& shape, DType dtype, int64_t from = 0) {
  std::vector<int64_t> numbers(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = from + static_cast<int64_t>(i) % 50;
  return TensorData(numbers, shape).cast(dtype);
}

class MemoryCheck {
 public:
  MemoryCheck(const Runner& runner, DType dtype) : runner_(runner), dtype_(dtype) {}

  std::vector<ConformanceFailure> run() {
    step("from_data", [&] { data_enters_as_a_copy(); });
    step("into_data", [&] { data_leaves_as_a_copy(); });
    step("into_data", [&] { empty_view_leaves(); });
    step("reshape", [&] {
      view_shares("reshape", [&](auto& x) { return runner_.reshape(x, {6, 4}); }, {6, 4});
    });
    step("permute", [&] {
      view_shares("permute", [&](auto& x) { return runner_.permute(x, {1, 0}); }, {6, 4});
    });
    step("slice", [&] {
      view_shares("slice", [&](auto& x) { return runner_.slice(x, 1, {1, 6, 2}); }, {4, 3});
    });
    step("expand", [&] { expand_shares(); });
    step("assign", [&] { assign_overlapping(); });
    step("assign", [&] { assign_reversed(); });
    if (kind_of(dtype_) == Kind::floating) {
      arithmetic("float_add", runner_.table().float_add);
      arithmetic("float_sub", runner_.table().float_sub);
      arithmetic("float_mul", runner_.table().float_mul);
    } else if (kind_of(dtype_) == Kind::integer) {
      arithmetic("int_add", runner_.table().int_add);
      arithmetic("int_sub", runner_.table().int_sub);
      arithmetic("int_mul", runner_.table().int_mul);
    } else {
      arithmetic("bool_and", runner_.table().bool_and);
      arithmetic("bool_xor", runner_.table().bool_xor);
    }
    return std::move(failures_);
  }

 private:
  using Binary = ErasedTensor (*)(Arg<ErasedTensor>, Arg<ErasedTensor>);

  void step(const char* op, const std::function<void()>& check) {
    try {
      check();
    } catch (const std::exception& e) {
      fail(op, concat("threw: ", e.what()));
    }
  }

  void fail(const std::string& op, const std::string& what) {
    const char* kind = kind_of(dtype_) == Kind::floating  ? "float_"
                       : kind_of(dtype_) == Kind::integer ? "int_"
                                                          : "bool_";
    const bool has_kind =
        op.find('_') != std::string::npos && op.find("_data") == std::string::npos;
    failures_.push_back({has_kind ? op : kind + op, concat(dtype_, ": ", what)});
  }

  void expect(const std::string& op, const std::string& situation, const TensorData& want,
              const ErasedTensor& got) {
    const std::string what = compare_identical(want, runner_.into_data(got));
    if (!what.empty()) fail(op, concat(situation, ": ", what));
  }

  void data_enters_as_a_copy() {
    TensorData data = counting({4, 6}, dtype_);
    const ErasedTensor x = runner_.from_data(data);
    std::memset(data.mutable_data(), 1, data.bytes());
    expect("from_data", "the data was changed afterwards", counting({4, 6}, dtype_), x);
  }

  void data_leaves_as_a_copy() {
    const ErasedTensor x = runner_.from_data(counting({4, 6}, dtype_));
    const TensorData data = runner_.into_data(x);
    runner_.assign(x, runner_.from_data(counting({4, 6}, dtype_, 30)));
    const std::string what = compare_identical(counting({4, 6}, dtype_), data);
    if (!what.empty()) fail("into_data", concat("the tensor was written afterwards: ", what));
  }

  // A view of no elements may stand anywhere, also beyond the end of its memory.
  void empty_view_leaves() {
    ErasedTensor x = runner_.from_data(counting({4, 0}, dtype_));
    x = runner_.slice(x, 0, {2, 4, 1});
    const TensorData want = counting({2, 0}, dtype_);
    expect("into_data", "a slice of an empty tensor", want, x);
    const BackendTable& table = runner_.table();
    const auto into_data = kind_of(dtype_) == Kind::floating  ? table.float_into_data
                           : kind_of(dtype_) == Kind::integer ? table.int_into_data
                                                              : table.bool_into_data;
    const std::string what = compare_identical(want, into_data(std::move(x)));
    if (!what.empty()) fail("into_data", concat("a donated slice of an empty tensor: ", what));
  }

  // Writes zeros through a view of x and expects to read them in x, and through a view of x what is
  // written in x.
  template <class View>
  void view_shares(const char* op, View&& view_of, const Shape& shape) {
    const ErasedTensor x = runner_.from_data(counting({4, 6}, dtype_, 1));
    const ErasedTensor view = view_of(x);
    runner_.assign(view, runner_.from_data(counting(shape, dtype_, 0)));
    const ErasedTensor again = view_of(x);
    expect(op, "a view was written and x does not show it", counting(shape, dtype_, 0), again);
    runner_.assign(x, runner_.from_data(counting({4, 6}, dtype_, 20)));
    expect(op, "x was written and a view does not show it", runner_.into_data(view_of(x)), view);
  }

  void expand_shares() {
    const ErasedTensor x = runner_.from_data(counting({1, 4}, dtype_, 1));
    const ErasedTensor view = runner_.expand(x, {3, 4});
    runner_.assign(x, runner_.from_data(counting({1, 4}, dtype_, 9)));
    expect("expand", "x was written and a view does not show it",
           runner_.into_data(runner_.expand(x, {3, 4})), view);
  }

  // x[1:] = x[:-1]: each element is read before it is written over.
  void assign_overlapping() {
    const ErasedTensor x = runner_.from_data(counting({40}, dtype_));
    runner_.assign(runner_.slice(x, 0, {1, 40, 1}), runner_.slice(x, 0, {0, 39, 1}));
    expect("assign", "x[1:] = x[:-1]", counting({39}, dtype_), runner_.slice(x, 0, {1, 40, 1}));
  }

  // x = x transposed, in x's own memory.
  void assign_reversed() {
    const TensorData data = counting({7, 7}, dtype_);
    const ErasedTensor x = runner_.from_data(data);
    runner_.assign(x, runner_.permute(x, {1, 0}));
    expect("assign", "x = x transposed", transposed(data), x);
  }

  void arithmetic(const char* op, Binary binary) {
    step(op, [&] { in_place_overlapping(op, binary); });
    step(op, [&] { donated_while_viewed(op, binary); });
    step(op, [&] { donated_broadcast(op, binary); });
    step(op, [&] { donated_twice(op, binary); });
    step(op, [&] { second_donated(op, binary); });
  }

  // x op= x transposed.
  void in_place_overlapping(const char* op, Binary binary) {
    const TensorData data = counting({7, 7}, dtype_);
    const ErasedTensor a = runner_.from_data(data);
    const ErasedTensor b = runner_.from_data(transposed(data));
    const TensorData want = runner_.into_data(binary(a, b));
    const ErasedTensor x = runner_.from_data(data);
    const ErasedTensor result = binary(Arg<ErasedTensor>::in_place(x), runner_.permute(x, {1, 0}));
    expect(op, "in place on x, with x transposed", want, result);
  }

  void donated_while_viewed(const char* op, Binary binary) {
    const TensorData data = counting({4, 6}, dtype_);
    ErasedTensor x = runner_.from_data(data);
    const ErasedTensor second_handle = x;
    const ErasedTensor view = runner_.permute(x, {1, 0});
    const ErasedTensor y = runner_.from_data(counting({4, 6}, dtype_, 5));
    const ErasedTensor result = binary(std::move(x), y);
    expect(op, "x was donated while a second handle on it lived", data, second_handle);
    expect(op, "x was donated while a view of it lived", transposed(data), view);
    // And when only the view is left to hold the memory.
    ErasedTensor z = runner_.from_data(data);
    const ErasedTensor view_of_z = runner_.permute(z, {1, 0});
    binary(std::move(z), y);
    expect(op, "x was donated while a view of it lived", transposed(data), view_of_z);
  }

  // The result is larger than the operand that was given away.
  void donated_broadcast(const char* op, Binary binary) {
    const TensorData row = counting({6}, dtype_);
    const TensorData matrix = counting({4, 6}, dtype_, 5);
    const ErasedTensor a = runner_.from_data(row);
    const ErasedTensor b = runner_.from_data(matrix);
    const TensorData want = runner_.into_data(binary(a, b));
    expect(op, "a donated operand that broadcasts", want,
           binary(runner_.from_data(row), runner_.from_data(matrix)));
  }

  void donated_twice(const char* op, Binary binary) {
    const TensorData data = counting({4, 6}, dtype_, 3);
    const ErasedTensor a = runner_.from_data(data);
    const TensorData want = runner_.into_data(binary(a, a));
    ErasedTensor x = runner_.from_data(data);
    ErasedTensor same = x;
    expect(op, "one tensor donated as both operands", want, binary(std::move(x), std::move(same)));
  }

  void second_donated(const char* op, Binary binary) {
    const TensorData left = counting({4, 6}, dtype_, 3);
    const TensorData right = counting({4, 6}, dtype_, 11);
    const ErasedTensor a = runner_.from_data(left);
    const TensorData want = runner_.into_data(binary(a, runner_.from_data(right)));
    const ErasedTensor b = runner_.from_data(right);
    expect(op, "only the first operand donated", want, binary(runner_.from_data(left), b));
    expect(op, "only the first operand donated, and the second changed", right, b);
    expect(op, "only the second operand donated, and the first changed", left, a);
  }

  const Runner& runner_;
  DType dtype_;
  std::vector<ConformanceFailure> failures_;
};

}  // namespace

std::vector<ConformanceFailure> check_memory(const Runner& runner, DType dtype) {
  return MemoryCheck(runner, dtype).run();
}

}  // namespace kiln::conformance
