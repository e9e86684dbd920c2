#include "kiln/core/dtype.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/core/error.h"

using namespace kiln;

namespace {

const std::vector<DType> kAll = {DType::f64, DType::f32,  DType::f16, DType::bf16, DType::i64,
                                 DType::i32, DType::i16,  DType::i8,  DType::u8,   DType::boolean,
                                 DType::c64, DType::c128, DType::q8};

}  // namespace

TEST_CASE("names, sizes and kinds") {
  struct Row {
    DType dtype;
    const char* name;
    size_t size;
    Kind kind;
  };
  const Row rows[] = {
      {DType::f64, "float64", 8, Kind::floating},   {DType::f32, "float32", 4, Kind::floating},
      {DType::f16, "float16", 2, Kind::floating},   {DType::bf16, "bfloat16", 2, Kind::floating},
      {DType::i64, "int64", 8, Kind::integer},      {DType::i32, "int32", 4, Kind::integer},
      {DType::i16, "int16", 2, Kind::integer},      {DType::i8, "int8", 1, Kind::integer},
      {DType::u8, "uint8", 1, Kind::integer},       {DType::boolean, "bool", 1, Kind::boolean},
      {DType::c64, "complex64", 8, Kind::floating}, {DType::c128, "complex128", 16, Kind::floating},
      {DType::q8, "qint8", 1, Kind::quantized}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(name_of(row.dtype) == row.name);
    CHECK(to_string(row.dtype) == row.name);
    CHECK(size_of(row.dtype) == row.size);
    CHECK(kind_of(row.dtype) == row.kind);
    CHECK(parse_dtype(row.name) == row.dtype);
  }
}

TEST_CASE("short names parse, others throw") {
  CHECK(parse_dtype("f32") == f32);
  CHECK(parse_dtype("float") == f32);
  CHECK(parse_dtype("double") == f64);
  CHECK(parse_dtype("half") == f16);
  CHECK(parse_dtype("bf16") == bf16);
  CHECK(parse_dtype("long") == i64);
  CHECK(parse_dtype("int") == i32);
  CHECK(parse_dtype("bool_") == bool_);
  CHECK_THROWS_AS(parse_dtype(""), DTypeError);
  CHECK_THROWS_AS(parse_dtype("Float32"), DTypeError);
  CHECK_THROWS_WITH_AS(parse_dtype("float33"), doctest::Contains("'float33'"), DTypeError);
}

TEST_CASE("promotion follows PyTorch's table") {
  // The table of torch.promote_types over these dtypes, in this order.
  const std::vector<DType> order = {u8, i8, i16, i32, i64, f16, f32, f64, bool_, bf16};
  const DType table[10][10] = {
      {u8, i16, i16, i32, i64, f16, f32, f64, u8, bf16},
      {i16, i8, i16, i32, i64, f16, f32, f64, i8, bf16},
      {i16, i16, i16, i32, i64, f16, f32, f64, i16, bf16},
      {i32, i32, i32, i32, i64, f16, f32, f64, i32, bf16},
      {i64, i64, i64, i64, i64, f16, f32, f64, i64, bf16},
      {f16, f16, f16, f16, f16, f16, f32, f64, f16, f32},
      {f32, f32, f32, f32, f32, f32, f32, f64, f32, f32},
      {f64, f64, f64, f64, f64, f64, f64, f64, f64, f64},
      {u8, i8, i16, i32, i64, f16, f32, f64, bool_, bf16},
      {bf16, bf16, bf16, bf16, bf16, f32, f32, f64, bf16, bf16},
  };
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = 0; j < order.size(); ++j) {
      CAPTURE(to_string(order[i]));
      CAPTURE(to_string(order[j]));
      CHECK(promote_types(order[i], order[j]) == table[i][j]);
    }
  }
}

TEST_CASE("promotion of complex and quantized dtypes") {
  CHECK(promote_types(DType::c64, f32) == DType::c64);
  CHECK(promote_types(DType::c64, i64) == DType::c64);
  CHECK(promote_types(f64, DType::c64) == DType::c128);
  CHECK(promote_types(DType::c64, DType::c128) == DType::c128);
  CHECK(promote_types(bool_, DType::c128) == DType::c128);
  CHECK(promote_types(DType::q8, DType::q8) == DType::q8);
  CHECK_THROWS_AS(promote_types(DType::q8, f32), DTypeError);
  for (DType t : kAll) CHECK(promote_types(t, t) == t);
}

TEST_CASE("the default dtype takes floating point dtypes only") {
  CHECK(default_dtype() == f32);
  set_default_dtype(f64);
  CHECK(default_dtype() == f64);
  CHECK_THROWS_AS(set_default_dtype(i32), DTypeError);
  CHECK_THROWS_AS(set_default_dtype(DType::c64), DTypeError);
  CHECK(default_dtype() == f64);
  set_default_dtype(f32);
}

TEST_CASE("visiting gives the C++ type") {
  for (DType t : kAll) {
    if (kind_of(t) == Kind::quantized || t == DType::c64 || t == DType::c128) {
      CHECK_THROWS_AS(visit_dtype("op", t, []<class T>() {}), DTypeError);
      continue;
    }
    CHECK(visit_dtype("op", t, []<class T>() { return dtype_of<T>; }) == t);
    CHECK(visit_dtype("op", t, []<class T>() { return sizeof(T); }) == size_of(t));
  }
  CHECK_THROWS_WITH_AS(visit_float("exp", i32, []<class T>() {}),
                       "exp: dtype not supported here; got int32", DTypeError);
  CHECK_THROWS_AS(visit_int("shift", f32, []<class T>() {}), DTypeError);
  CHECK_THROWS_AS(visit_int("shift", bool_, []<class T>() {}), DTypeError);
}
