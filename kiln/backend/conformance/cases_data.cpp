// Creation, conversion, copying, writing.
#include "kiln/backend/conformance/cases.h"

namespace kiln::conformance {
namespace {

const Shape kShapes[] = {{}, {0}, {1}, {5}, {3, 4}, {2, 0, 3}, {2, 3, 4}};

std::string named(const char* kind, const char* op) { return std::string(kind) + "_" + op; }

// What all three kinds have alike.
void add_kind(CaseList& list, const char* kind, DType dtype) {
  for (const Shape& shape : kShapes) {
    const Operand x = dtype == bool_ ? list.booleans(shape) : list.uniform(shape, dtype, 0, 100);
    const Operand y = dtype == bool_ ? list.booleans(shape) : list.uniform(shape, dtype, 0, 100);
    list.add(named(kind, "from_data"), {HostData{x.data}, Here{}});
    list.add(named(kind, "into_data"), {x}).expandable = true;
    list.add(named(kind, "to_device"), {x, Here{}}).expandable = true;
    list.add(named(kind, "contiguous"), {x}).expandable = true;
    list.add(named(kind, "assign"), {x, y});
    list.add(named(kind, "fill"), {x, Scalar(3)});
    if (dtype == bool_) {
      list.add("bool_empty", {shape, Here{}}).values_undefined = true;
      list.add("bool_full", {shape, true, Here{}});
      list.add("bool_fill", {x, Scalar(false)});
    } else {
      list.add(named(kind, "empty"), {shape, dtype, Here{}}).values_undefined = true;
      list.add(named(kind, "full"), {shape, Scalar(7), dtype, Here{}});
    }
  }
  const Operand large =
      dtype == bool_ ? list.booleans({130, 257}) : list.uniform({130, 257}, dtype, 0, 100);
  list.add(named(kind, "contiguous"), {large});
  list.add(named(kind, "assign"), {large, large});
}

void add_random(CaseList& list) {
  const RandomStream stream{0x123456789abcdefull, 77};
  // 40001 is odd and spans several pieces of a parallel loop.
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{7}, Shape{3, 5}, Shape{40001}}) {
    for (DType dtype : list.floats) {
      const Tolerance last_bits = {dtype == f64 ? 4.0 : 0.0,
                                   0.0};  // f64 uses the system's log, sin
      list.add("float_random", {shape, Distribution::uniform(), stream, dtype, Here{}});
      list.add("float_random", {shape, Distribution::uniform(-3.0, 5.0), stream, dtype, Here{}});
      list.add("float_random", {shape, Distribution::bernoulli(0.3), stream, dtype, Here{}});
      list.add("float_random", {shape, Distribution::normal(), stream, dtype, Here{}}, last_bits);
      list.add("float_random", {shape, Distribution::normal(1.0, 3.0), stream, dtype, Here{}},
               last_bits);
      list.add("float_random", {shape, Distribution::exponential(2.0), stream, dtype, Here{}},
               last_bits);
      list.add("float_random", {shape, Distribution::integers(-4, 9), stream, dtype, Here{}});
    }
    for (DType dtype : list.ints) {
      list.add("int_random", {shape, Distribution::integers(2, 100), stream, dtype, Here{}});
      list.add("int_random", {shape, Distribution::bernoulli(0.7), stream, dtype, Here{}});
      list.add("int_random", {shape, Distribution::uniform(0.0, 50.0), stream, dtype, Here{}});
    }
  }
}

void add_conversions(CaseList& list) {
  const std::vector<double> odd = {0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.75, 100.25, 1e-8, 126.9};
  const std::vector<double> extreme = {kInf,    -kInf, kNan,  3e38, -3e38, 65504.0,
                                       65520.0, 1e10,  -1e10, 1e19, 1e-45};
  for (DType from : list.floats) {
    for (const Operand& x : {values(odd, from), values(extreme, from), list.uniform({3, 4}, from),
                             list.uniform({0}, from), list.uniform({130, 257}, from)}) {
      for (DType to : list.floats) list.add("float_cast", {x, to}, kRounded);
      list.add("float_into_bool", {x});
    }
    for (DType to : list.ints) {
      list.add("float_into_int", {values({0.0, 0.9, 1.0, 1.9, 2.5, 99.99, 127.0}, from), to});
      list.add("float_into_int", {list.uniform({3, 4}, from, 0.0, 100.0), to}).expandable = true;
      list.add("float_into_int", {list.uniform({130, 257}, from, 0.0, 100.0), to});
      if (to != u8) list.add("float_into_int", {values({-0.9, -1.0, -2.5, -99.9}, from), to});
      // Beyond the range: the nearest bound; NaN gives 0.
      list.add("float_into_int", {values(extreme, from), to});
    }
    list.add("float_fill", {values(odd, from), Scalar(2.5)});
    list.add("float_fill", {values(odd, from), Scalar(kNan)});
    list.add("float_full", {Shape{3}, Scalar(-kInf), from, Here{}});
    list.add("float_full", {Shape{3}, Scalar(0.1), from, Here{}}, kRounded);
    for (int64_t count : {int64_t{0}, int64_t{1}, int64_t{10}}) {
      list.add("float_arange", {0.0, 1.0, count, from, Here{}}, kRounded);
      list.add("float_arange", {-1.5, 0.25, count, from, Here{}}, kRounded);
      list.add("float_arange", {5.0, -0.1, count, from, Here{}}, kRounded);
    }
  }
  for (DType from : list.ints) {
    const Operand edge = int_values({0, 1, lowest_of(from), highest_of(from), 77}, from);
    for (const Operand& x :
         {edge, list.integers({3, 4}, from, 0, 127), list.integers({0}, from, 0, 1),
          list.integers({130, 257}, from, 0, 99)}) {
      for (DType to : list.ints) list.add("int_cast", {x, to});
      for (DType to : list.floats) list.add("int_into_float", {x, to}, kRounded);
      list.add("int_into_bool", {x});
    }
    for (int64_t count : {int64_t{0}, int64_t{1}, int64_t{10}}) {
      list.add("int_arange", {int64_t{2}, int64_t{3}, count, from, Here{}});
      list.add("int_arange", {int64_t{100}, int64_t{-7}, count, from, Here{}});
    }
  }
  for (const Operand& x :
       {list.booleans({}), list.booleans({0}), list.booleans({3, 4}), list.booleans({130, 257})}) {
    for (DType to : list.floats) list.add("bool_into_float", {x, to}).expandable = true;
    for (DType to : list.ints) list.add("bool_into_int", {x, to}).expandable = true;
  }
}

}  // namespace

void add_data_cases(CaseList& list) {
  for (DType dtype : list.floats) add_kind(list, "float", dtype);
  for (DType dtype : list.ints) add_kind(list, "int", dtype);
  add_kind(list, "bool", bool_);
  add_conversions(list);
  add_random(list);
}

}  // namespace kiln::conformance
