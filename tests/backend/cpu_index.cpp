// Cpu's ops with indices: values against Reference, bad indices, duplicates, shared memory,
// determinism.
#include "kiln/core/error.h"
#include "tests/backend/neural_check.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::test;

namespace {

HostHandle indices(const std::vector<int64_t>& values, const Shape& shape) {
  return host::from_data(TensorData(values, shape), Device());
}

}  // namespace

TEST_CASE("Cpu: gather, scatter, index_select and index_add along every dim") {
  for (const DType dtype : {f64, f32, f16}) {
    const Shape shape{5, 7, 6};
    const HostHandle x = random_tensor(shape, dtype, 1);
    for (const HostHandle& layout : {x, stored_transposed(x), stored_with_gaps(x)}) {
      for (int dim = 0; dim < 3; ++dim) {
        CAPTURE(dim);
        Shape some = shape;
        some[dim] = 9;
        const HostHandle index = random_ints(some, i64, shape[dim], 2);
        const HostHandle source = random_tensor(some, dtype, 3);
        check_close(CpuOps::float_gather(layout, dim, index),
                    Reference::float_gather(x, dim, index), 0.0);
        check_close(CpuOps::float_scatter(layout, dim, index, source),
                    Reference::float_scatter(x, dim, index, source), 0.0);
        check_close(CpuOps::float_scatter_add(layout, dim, index, source),
                    Reference::float_scatter_add(x, dim, index, source), kernel_tolerance(dtype));
        const HostHandle line = random_ints({9}, i64, shape[dim], 4);
        check_close(CpuOps::float_index_select(layout, dim, line),
                    Reference::float_index_select(x, dim, line), 0.0);
        check_close(CpuOps::float_index_add(layout, dim, line, source),
                    Reference::float_index_add(x, dim, line, source), kernel_tolerance(dtype));
        // An index smaller than x in the other dims.
        const HostHandle part = random_ints({2, 3, 4}, i64, shape[dim], 5);
        const HostHandle values = random_tensor({2, 3, 4}, dtype, 6);
        check_close(CpuOps::float_gather(layout, dim, part), Reference::float_gather(x, dim, part),
                    0.0);
        check_close(CpuOps::float_scatter_add(layout, dim, part, values),
                    Reference::float_scatter_add(x, dim, part, values), kernel_tolerance(dtype));
      }
    }
  }
}

TEST_CASE("Cpu: an index of whole rows, and one number as the source, are as good as spread out") {
  const Shape shape{5, 7, 6};
  const HostHandle x = random_tensor(shape, f32, 1);
  const HostHandle one = random_tensor({1}, f32, 2);
  for (int dim = 0; dim < 3; ++dim) {
    CAPTURE(dim);
    Shape some = shape;
    some[dim] = 9;
    Strides strides{0, 0, 0};
    strides[dim] = 1;
    const HostHandle line = random_ints({9}, i64, shape[dim], 3);
    const HostHandle spread = host::view(line, some, strides, 0);
    const HostHandle source = random_tensor(some, f32, 4);
    const HostHandle number = host::view(one, some, Strides{0, 0, 0}, 0);
    check_close(CpuOps::float_gather(x, dim, spread), Reference::float_gather(x, dim, spread), 0.0);
    for (const HostHandle& from : {source, number}) {
      check_close(CpuOps::float_scatter(x, dim, spread, from),
                  Reference::float_scatter(x, dim, spread, from), 0.0);
      check_close(CpuOps::float_scatter_add(x, dim, spread, from),
                  Reference::float_scatter_add(x, dim, spread, from), kernel_tolerance(f32));
      check_close(CpuOps::float_index_copy(x, dim, line, from),
                  Reference::float_scatter(x, dim, spread, from), 0.0);
      check_close(CpuOps::float_index_add(x, dim, line, from),
                  Reference::float_index_add(x, dim, line, from), kernel_tolerance(f32));
      for (const ScatterReduction how :
           {ScatterReduction::prod, ScatterReduction::amax, ScatterReduction::amin}) {
        check_close(CpuOps::float_scatter_reduce(x, dim, spread, from, how),
                    Reference::float_scatter_reduce(x, dim, spread, from, how),
                    kernel_tolerance(f32));
      }
    }
  }
  CHECK_THROWS_AS(CpuOps::float_gather(
                      x, 1, host::view(indices({0, 7}, {2}), Shape{5, 2, 6}, Strides{0, 1, 0}, 0)),
                  IndexError);
}

TEST_CASE("Cpu: many sums into one short row") {
  const int64_t n = 200001;
  const HostHandle index = random_ints({n}, i64, 37, 5);
  const HostHandle x = random_ints({37}, i64, 100, 6);
  const HostHandle source = random_ints({n}, i64, 100, 7);
  check_close(CpuOps::int_index_add(x, 0, index, source),
              Reference::int_index_add(x, 0, index, source), 0.0);
  check_close(CpuOps::int_scatter_add(x, 0, index, source),
              Reference::int_scatter_add(x, 0, index, source), 0.0);
  const HostHandle numbers = random_tensor({n}, f64, 8);
  const HostHandle zeros = CpuOps::float_full({37}, 0.0, f64, Device());
  check_close(CpuOps::float_index_add(zeros, 0, index, numbers),
              Reference::float_index_add(zeros, 0, index, numbers), kernel_tolerance(f64));
  CHECK_THROWS_AS(
      CpuOps::float_index_add(CpuOps::float_full({36}, 0.0, f64, Device()), 0, index, numbers),
      IndexError);
}

TEST_CASE("Cpu: int sums at an index wrap; bools are moved") {
  const HostHandle x = random_ints({4}, i8, 100, 1);
  const HostHandle index = indices({1, 1, 1, 1}, {4});
  const HostHandle hundred = CpuOps::int_full({4}, 100, i8, Device());
  check_close(CpuOps::int_index_add(x, 0, index, hundred),
              Reference::int_index_add(x, 0, index, hundred), 0.0);
  const HostHandle mask = CpuOps::int_greater_scalar(x, 50);
  check_close(CpuOps::bool_gather(mask, 0, index), Reference::bool_gather(mask, 0, index), 0.0);
}

TEST_CASE("Cpu: an index out of range is named, and nothing is written") {
  const HostHandle x = random_tensor({3, 4}, f32, 1);
  const std::vector<double> before = values_of(x);
  const HostHandle source = random_tensor({2, 4}, f32, 2);
  for (const int64_t bad : {int64_t{3}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    const HostHandle line = indices({0, bad}, {2});
    const HostHandle full =
        CpuOps::int_contiguous(host::expand(CpuOps::int_reshape(line, {2, 1}), {2, 4}));
    const auto in_place = Arg<HostHandle>::in_place(x);
    const std::string messages[] = {
        message_of<IndexError>([&] { CpuOps::float_gather(x, 0, full); }),
        message_of<IndexError>([&] { CpuOps::float_scatter(in_place, 0, full, source); }),
        message_of<IndexError>([&] { CpuOps::float_scatter_add(in_place, 0, full, source); }),
        message_of<IndexError>([&] { CpuOps::float_index_select(x, 0, line); }),
        message_of<IndexError>([&] { CpuOps::float_index_add(in_place, 0, line, source); }),
    };
    for (const std::string& message : messages) {
      CAPTURE(message);
      CHECK(message.find(std::to_string(bad)) != std::string::npos);
      CHECK(message.find("< 3") != std::string::npos);
    }
    CHECK(values_of(x) == before);
  }
}

TEST_CASE("Cpu: in place at an index, with operands that share the memory") {
  const HostHandle x = random_tensor({40, 30}, f32, 1);
  const HostHandle index = random_ints({40}, i64, 40, 2);
  const HostHandle want = CpuOps::float_index_add(x, 0, index, x);
  CpuOps::float_index_add(Arg<HostHandle>::in_place(x), 0, index, x);
  CHECK(same_bits(x, want));

  const HostHandle turned = host::permute(random_tensor({30, 40}, f32, 3), {1, 0});
  const HostHandle sum = CpuOps::float_index_add(turned, 0, index, x);
  CHECK(CpuOps::float_index_add(Arg<HostHandle>::in_place(turned), 0, index, x) == turned);
  CHECK(same_bits(turned, sum));

  const HostHandle ints = random_ints({20}, i64, 20, 4);
  const HostHandle moved = CpuOps::int_scatter(ints, 0, ints, ints);
  CpuOps::int_scatter(Arg<HostHandle>::in_place(ints), 0, ints, ints);
  CHECK(same_bits(ints, moved));
}

TEST_CASE("Cpu: sums at duplicate indices are bit-identical at any number of threads") {
  const HostHandle table = random_tensor({50, 300}, f32, 1);
  const HostHandle index = random_ints({2000}, i64, 50, 2);
  const HostHandle source = random_tensor({2000, 300}, f32, 3);
  const HostHandle line = random_ints({100000}, i64, 7, 4);
  const HostHandle numbers = random_tensor({100000}, f32, 5);
  const HostHandle few = random_tensor({7}, f32, 6);
  check_deterministic([&] {
    return std::vector<HostHandle>{
        CpuOps::float_index_add(table, 0, index, source),
        CpuOps::float_scatter_add(few, 0, line, numbers),
        CpuOps::float_scatter(few, 0, line, numbers),
        CpuOps::float_index_select(table, 0, index),
    };
  });
}

TEST_CASE("Cpu: indexing 0-d and empty tensors") {
  const HostHandle scalar = random_tensor({}, f32, 1);
  const HostHandle zero = indices({0}, {});
  CHECK(same_bits(CpuOps::float_gather(scalar, 0, zero), scalar));
  CHECK(same_bits(CpuOps::float_scatter(scalar, 0, zero, scalar), scalar));
  const HostHandle x = random_tensor({3, 4}, f32, 1);
  const HostHandle none = indices({}, {0});
  CHECK(CpuOps::float_index_select(x, 1, none)->shape() == Shape{3, 0});
  const HostHandle nothing = CpuOps::float_empty({0, 4}, f32, Device());
  CHECK(same_bits(CpuOps::float_index_add(x, 0, none, nothing), x));
}
