// Int and bool arithmetic.
#include "kiln/backend/conformance/cases.h"

namespace kiln::conformance {
namespace {

const std::pair<Shape, Shape> kPairs[] = {{{}, {}},         {{3, 4}, {3, 4}}, {{3, 1}, {1, 4}},
                                          {{2, 3, 4}, {4}}, {{4}, {2, 3, 4}}, {{}, {5}},
                                          {{0, 3}, {1, 3}}, {{67}, {67}},     {{2, 3, 4}, {3, 1}}};
const Shape kLarge = {130, 257};

// Where arithmetic wraps.
std::vector<int64_t> edges(DType dtype) {
  return {
      0, 1, 2, 3, lowest_of(dtype), lowest_of(dtype) + 1, highest_of(dtype), highest_of(dtype) - 1,
      77};
}

void add_binary(CaseList& list, const std::string& op, DType dtype, bool divides) {
  const int64_t low = divides ? 1 : 0;
  for (const auto& [a, b] : kPairs) {
    list.add(op, {list.integers(a, dtype, 0, 100), list.integers(b, dtype, low, 100)}).expandable =
        true;
  }
  list.add(op, {list.integers(kLarge, dtype, 0, 100), list.integers(kLarge, dtype, low, 100)});
  list.add(op, {list.integers(kLarge, dtype, 0, 100), list.integers({}, dtype, low, 100)});
  std::vector<int64_t> divisors = edges(dtype);
  if (divides) divisors[0] = dtype == u8 ? 255 : -1;
  if (divides && dtype == u8) divisors[4] = divisors[5] = 7;
  const auto n = static_cast<int64_t>(divisors.size());
  list.add(op, {int_values(edges(dtype), {n, 1}, dtype), int_values(divisors, {1, n}, dtype)});
  if (divides) {
    if (dtype != u8) {
      list.add(op,
               {int_values({7, -7, 7, -7, 6, -6}, dtype), int_values({3, 3, -3, -3, 3, 3}, dtype)});
    }
    list.add(op, {int_values({1, 2, 3}, dtype), int_values({1, 0, 1}, dtype)});  // ValueError
  }
}

}  // namespace

void add_int_cases(CaseList& list) {
  for (DType dtype : list.ints) {
    for (const char* op : {"int_add", "int_sub", "int_mul", "int_maximum", "int_minimum",
                           "int_bitwise_and", "int_bitwise_or", "int_bitwise_xor"}) {
      add_binary(list, op, dtype, false);
    }
    add_binary(list, "int_div", dtype, true);
    add_binary(list, "int_remainder", dtype, true);
    const Operand edge = int_values(edges(dtype), dtype);
    for (const char* op : {"int_add_scalar", "int_mul_scalar", "int_rsub_scalar"}) {
      for (int64_t scalar : {3, 0, 100}) {
        list.add(op, {edge, Scalar(scalar)}).expandable = true;
        list.add(op, {list.integers({3, 4}, dtype, 0, 100), Scalar(scalar)}).expandable = true;
        list.add(op, {list.integers({}, dtype, 0, 100), Scalar(scalar)});
        list.add(op, {list.integers({0}, dtype, 0, 1), Scalar(scalar)});
      }
      list.add(op, {list.integers(kLarge, dtype, 0, 100), Scalar(7)});
    }
    for (const auto& [low, high] : {std::pair{int64_t{2}, int64_t{50}},
                                    {int64_t{-1000000}, int64_t{60}},
                                    {int64_t{3}, int64_t{5000000000}},
                                    {int64_t{90}, int64_t{10}}}) {
      list.add("int_clamp", {edge, low, high}).expandable = true;
      list.add("int_clamp", {list.integers({3, 4}, dtype, 0, 100), low, high}).expandable = true;
      list.add("int_clamp", {list.integers({0}, dtype, 0, 1), low, high});
      list.add("int_clamp", {list.integers(kLarge, dtype, 0, 100), low, high});
    }
    for (const char* op : {"int_bitwise_not", "int_neg", "int_abs", "int_sign"}) {
      list.add(op, {edge}).expandable = true;
      list.add(op, {list.integers({}, dtype, 0, 100)});
      list.add(op, {list.integers({0, 2}, dtype, 0, 1)});
      if (dtype != u8) list.add(op, {list.integers({3, 4, 5}, dtype, -100, 100)});
      list.add(op, {list.integers(kLarge, dtype, 0, 100)});
    }
  }
}

void add_bool_cases(CaseList& list) {
  for (const char* op : {"bool_equal", "bool_and", "bool_or", "bool_xor"}) {
    for (const auto& [a, b] : kPairs) {
      list.add(op, {list.booleans(a), list.booleans(b)}).expandable = true;
    }
    list.add(op, {list.booleans(kLarge), list.booleans({257})});
  }
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 4}, kLarge}) {
    list.add("bool_not", {list.booleans(shape)}).expandable = true;
  }
}

}  // namespace kiln::conformance
