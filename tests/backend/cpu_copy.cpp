// Cpu's copies between layouts: transposes of every size and element, slices, flips, overlapping
// assignments, cat, pad.
#include <algorithm>
#include <iterator>

#include "kiln/backend/cpu/elementwise/convert_kernels.h"
#include "tests/backend/neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

HostHandle random_of(const Shape& shape, DType dtype) {
  if (is_floating_point(dtype)) return random_tensor(shape, dtype, 1);
  return random_ints(shape, dtype, 100, 1);
}

HostHandle copied(const HostHandle& x) {
  return is_floating_point(x->dtype()) ? CpuOps::float_contiguous(x) : CpuOps::int_contiguous(x);
}

}  // namespace

TEST_CASE("Cpu: transposed copies of every size and element") {
  at_every_target([] {
    const Shape shapes[] = {{1, 5},    {4, 4},   {5, 4},   {16, 16}, {17, 15}, {64, 33}, {65, 64},
                            {130, 70}, {3, 257}, {300, 4}, {2, 100}, {100, 2}, {4, 77},  {77, 3}};
    for (const Shape& shape : shapes) {
      CAPTURE(to_string(shape));
      for (const DType dtype : {f64, f32, f16, u8}) {
        const HostHandle x = random_of(shape, dtype);
        const HostHandle turned = host::permute(x, {1, 0});
        const HostHandle copy = copied(turned);
        CHECK(copy->is_contiguous());
        CHECK(values_of(copy) == values_of(turned));
        const HostHandle inner =
            host::slice(host::slice(turned, 0, Range{1, shape[1], 1}), 1, Range{0, shape[0], 2});
        CHECK(values_of(copied(inner)) == values_of(inner));
      }
    }
  });
}

TEST_CASE("Cpu: copies of permuted tensors of higher rank") {
  const HostHandle x = random_tensor({5, 6, 7, 8}, f32, 1);
  const HostHandle y = random_tensor({5, 6, 7, 8}, f64, 2);
  Dims order{0, 1, 2, 3};
  do {
    CAPTURE(to_string(order));
    for (const HostHandle& base : {x, y}) {
      const HostHandle view = host::permute(base, order);
      CHECK(values_of(CpuOps::float_contiguous(view)) == values_of(view));
      // Into a permuted target.
      const HostHandle target =
          host::permute(random_tensor({8, 7, 6, 5}, base->dtype(), 3), {3, 2, 1, 0});
      const HostHandle source = host::permute(base, {0, 1, 2, 3});
      CpuOps::float_assign(target, source);
      CHECK(values_of(target) == values_of(source));
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("Cpu: a transposed copy larger than the caches") {
  const HostHandle x = CpuOps::float_arange(0.0, 1.0, 2500 * 2048, f32, Device());
  for (const Shape& shape : {Shape{2048, 2500}, Shape{2500, 2048}}) {
    const HostHandle matrix = CpuOps::float_reshape(x, shape);
    const HostHandle turned = CpuOps::float_contiguous(host::permute(matrix, {1, 0}));
    int64_t wrong = 0;
    for (int64_t i = 0; i < shape[0]; ++i) {
      for (int64_t j = 0; j < shape[1]; ++j) {
        wrong += turned->data_as<float>()[j * shape[0] + i] != static_cast<float>(i * shape[1] + j);
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("Cpu: rows that are read backwards, in steps, or again and again") {
  at_every_target([] {
    for (const int64_t n : {1, 2, 3, 13, 40, 1000}) {
      CAPTURE(n);
      for (const DType dtype : {f64, f32, f16, u8}) {
        const HostHandle x = random_of({3, n}, dtype);
        const HostHandle back =
            is_floating_point(dtype) ? CpuOps::float_flip(x, {1}) : CpuOps::int_flip(x, {1});
        std::vector<double> turned;
        const std::vector<double> before = values_of(x);
        for (size_t r = 0; r < 3; ++r) {
          const auto first = before.begin() + static_cast<int64_t>(r) * n;
          turned.insert(turned.end(), std::make_reverse_iterator(first + n),
                        std::make_reverse_iterator(first));
        }
        CHECK(values_of(back) == turned);
        const HostHandle steps = host::slice(x, 1, Range{0, n, 2});
        CHECK(values_of(copied(steps)) == values_of(steps));
        const HostHandle column = host::slice(x, 1, Range{0, 1, 1});
        for (const Shape& wide : {Shape{3, n}, Shape{2, 3, n}}) {
          const HostHandle spread = host::expand(column, wide);
          CHECK(values_of(copied(spread)) == values_of(spread));
        }
        // From a place that no vector is aligned to.
        const HostHandle rest = host::slice(x, 1, Range{n / 2, n, 1});
        CHECK(values_of(copied(rest)) == values_of(rest));
      }
    }
  });
}

// [4, 3, n] of rows that lie apart in the source, the target, or both; what lies between the
// target's rows stays as it was.
TEST_CASE("Cpu: rows of every length that lie apart") {
  at_every_target([] {
    const auto slice = [](const HostHandle& x, int64_t n) {
      return host::slice(x, 2, Range{1, n + 1, 1});
    };
    for (int64_t n = 1; n < 300; n += n < 70 ? 1 : 13) {
      CAPTURE(n);
      for (const DType dtype : {f64, f32, f16, u8}) {
        const HostHandle wide = random_of({4, 3, n + 3}, dtype);
        const HostHandle from = host::permute(slice(wide, n), {0, 1, 2});
        CHECK(values_of(copied(from)) == values_of(from));
        const HostHandle swapped = host::permute(from, {1, 0, 2});
        CHECK(values_of(copied(swapped)) == values_of(swapped));
        const HostHandle memory = random_of({3, 4, n + 3}, dtype);
        std::vector<double> wanted = values_of(memory);
        const std::vector<double> rows = values_of(swapped);
        for (size_t r = 0; r < 12; ++r) {
          std::copy_n(rows.begin() + static_cast<int64_t>(r) * n, n,
                      wanted.begin() + static_cast<int64_t>(r) * (n + 3) + 1);
        }
        const HostHandle to = slice(memory, n);
        is_floating_point(dtype) ? CpuOps::float_assign(to, swapped)
                                 : CpuOps::int_assign(to, swapped);
        CHECK(values_of(memory) == wanted);
        const HostHandle back = is_floating_point(dtype) ? CpuOps::float_flip(swapped, {2})
                                                         : CpuOps::int_flip(swapped, {2});
        std::vector<double> turned = values_of(back);
        for (size_t r = 0; r < 12; ++r) {
          std::reverse(turned.begin() + static_cast<int64_t>(r) * n,
                       turned.begin() + static_cast<int64_t>(r + 1) * n);
        }
        CHECK(turned == rows);
      }
    }
  });
}

TEST_CASE("Cpu: rows of whole lines are copied past the caches") {
  const HostHandle x = random_tensor({2, 700, 200, 64}, f32, 1);  // 72 MB
  const HostHandle heads = CpuOps::float_contiguous(host::permute(x, {0, 2, 1, 3}));
  const auto* from = x->data_as<const float>();
  const auto* to = heads->data_as<const float>();
  bool right = true;
  for (int64_t i = 0; i < 2 * 700 * 200; ++i) {
    const int64_t n = i / 140000, row = i / 200 % 700, head = i % 200;
    right = right && std::equal(from + i * 64, from + (i + 1) * 64,
                                to + ((n * 200 + head) * 700 + row) * 64);
  }
  CHECK(right);
}

TEST_CASE("Cpu: copies past the caches begin and end anywhere") {
  at_every_target([] {
    std::vector<uint8_t> from(700);
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i * 7 + 1);
    alignas(64) uint8_t to[900];
    for (const int64_t n : {0, 1, 63, 64, 65, 127, 200, 640}) {
      for (int64_t start = 0; start < 130; ++start) {
        std::fill(std::begin(to), std::end(to), uint8_t{0xee});
        cpu::convert_kernels().stream_copy(from.data() + start % 5, to + start, n);
        bool right = true;
        for (int64_t i = 0; i < 900; ++i) {
          const bool inside = i >= start && i < start + n;
          const auto at = static_cast<size_t>(i - start + start % 5);
          right = right && to[i] == (inside ? from[at] : uint8_t{0xee});
        }
        CAPTURE(n);
        CAPTURE(start);
        CHECK(right);
      }
    }
  });
}

TEST_CASE("Cpu: a large assignment to rows whose pieces begin between lines") {
  const Shape shape{260, 33001}, wide{260, 33024};
  const HostHandle from = random_of(shape, f64);  // 69 MB: past the caches where they are small
  const HostHandle memory = Cpu::float_full(wide, Scalar(7.0), f64, Device(kCpu));
  const HostHandle to = Cpu::float_slice(memory, 1, Range{0, shape[1], 1});
  Cpu::float_assign(to, from);
  const auto* source = from->data_as<const double>();
  const auto* target = memory->data_as<const double>();
  bool right = true;
  for (int64_t r = 0; r < shape[0]; ++r) {
    right = right &&
            std::equal(source + r * shape[1], source + (r + 1) * shape[1], target + r * wide[1]);
    right = right && target[r * wide[1] + shape[1]] == 7.0;
  }
  CHECK(right);
}

TEST_CASE("Cpu: flips") {
  const HostHandle x = random_tensor({4, 5, 6}, f32, 1);
  for (const Dims& dims : {Dims{}, Dims{0}, Dims{2}, Dims{0, 2}, Dims{0, 1, 2}}) {
    check_close(CpuOps::float_flip(x, dims), Reference::float_flip(x, dims), 0.0);
    const HostHandle turned = stored_transposed(x);
    check_close(CpuOps::float_flip(turned, dims), Reference::float_flip(x, dims), 0.0);
  }
}

TEST_CASE("Cpu: assignment broadcasts, and reads an overlapping source first") {
  const HostHandle x = random_tensor({6, 6}, f32, 1);
  const HostHandle row = random_tensor({6}, f32, 2);
  CpuOps::float_assign(host::slice(x, 0, Range{0, 6, 2}), row);
  CHECK(values_of(host::slice(x, 0, Range{2, 3, 1})) == values_of(row));

  const std::vector<double> before = values_of(host::permute(x, {1, 0}));
  const uint32_t version = x->version();
  CpuOps::float_assign(x, host::permute(x, {1, 0}));
  CHECK(values_of(x) == before);
  CHECK(x->version() != version);

  const HostHandle line = CpuOps::float_arange(0.0, 1.0, 8, f32, Device());
  CpuOps::float_assign(host::slice(line, 0, Range{1, 8, 1}), host::slice(line, 0, Range{0, 7, 1}));
  CHECK(values_of(line) == std::vector<double>{0, 0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("Cpu: reshape shares memory where it can") {
  const HostHandle x = random_tensor({4, 6}, f32, 1);
  CHECK(CpuOps::float_reshape(x, {2, 12})->data() == x->data());
  const HostHandle turned = host::permute(x, {1, 0});
  const HostHandle flat = CpuOps::float_reshape(turned, {24});
  CHECK(flat->data() != x->data());
  CHECK(values_of(flat) == values_of(turned));
  CHECK(CpuOps::float_contiguous(x) == x);
}

TEST_CASE("Cpu: cat along every dim, of parts of any layout") {
  const HostHandle parts[] = {random_tensor({2, 3, 4}, f32, 1),
                              stored_transposed(random_tensor({2, 3, 4}, f32, 2)),
                              stored_with_gaps(random_tensor({2, 3, 4}, f32, 3))};
  for (int dim = 0; dim < 3; ++dim) {
    const HostHandle got = CpuOps::float_cat(parts, dim);
    for (int i = 0; i < 3; ++i) {
      const int64_t size = parts[i]->shape()[dim];
      const HostHandle part = host::slice(got, dim, Range{i * size, (i + 1) * size, 1});
      CHECK(values_of(part) == values_of(parts[i]));
    }
  }
}

TEST_CASE("Cpu: cat of long rows, cut anywhere") {
  // Rows of 0 to 300 elements and results of several pieces of a parallel loop.
  for (const DType dtype : {u8, f16, f32, f64}) {
    CAPTURE(to_string(dtype));
    for (const int64_t rows : {1, 3, 1500}) {
      std::vector<HostHandle> parts;
      for (const int64_t width : {70, 0, 1, 300, 64}) {
        parts.push_back(random_of({rows, rows == 1 ? 997 * width : width}, dtype));
      }
      const HostHandle got =
          is_floating_point(dtype) ? CpuOps::float_cat(parts, 1) : CpuOps::int_cat(parts, 1);
      int64_t at = 0;
      for (const HostHandle& part : parts) {
        const int64_t width = part->shape()[1];
        CHECK(values_of(host::slice(got, 1, Range{at, at + width, 1})) == values_of(part));
        at += width;
      }
      CHECK(at == got->shape()[1]);
    }
  }
}

TEST_CASE("Cpu: pad with a value, at gaps of every width, rows of every length, on any thread") {
  struct Form {
    Shape x, before, behind;
  };
  std::vector<Form> forms = {
      {{}, {}, {}},
      {{7}, {0}, {0}},
      {{3, 20001}, {1, 7}, {0, 9000}},               // long rows
      {{200000}, {3}, {70001}},                      // one of them
      {{1, 40, 33, 5}, {0, 2, 3, 0}, {1, 0, 1, 0}},  // whose elements are a dim
      {{70, 90, 4}, {0, 1, 1}, {0, 2, 1}},
      {{5000, 1}, {10, 0}, {0, 3}},
      {{2, 0, 3}, {1, 2, 0}, {0, 1, 1}}};
  for (const int64_t gap : {0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 40, 70}) {
    forms.push_back({{130, 31}, {0, gap}, {0, gap / 2}});
  }
  for (const DType dtype : {u8, f16, f32, f64}) {
    CAPTURE(to_string(dtype));
    const bool floats = is_floating_point(dtype);
    for (const auto& [shape, before, behind] : forms) {
      CAPTURE(to_string(shape));
      CAPTURE(to_string(before));
      const HostHandle x = random_of(shape, dtype);
      for (const int number : {0, 7}) {
        const auto padded = [&](const HostHandle& t) {
          return floats ? CpuOps::float_pad(t, before, behind, Scalar(number))
                        : CpuOps::int_pad(t, before, behind, Scalar(number));
        };
        const HostHandle got = padded(x);
        // Element by element: inside what x has, elsewhere the number.
        const std::vector<double> values = values_of(x), all = values_of(got);
        const Shape& to = got->shape();
        size_t wrong = 0, seen = 0;
        for (size_t i = 0; i < all.size(); ++i) {
          auto rest = static_cast<int64_t>(i);
          int64_t at = 0, step = 1;
          bool inside = true;
          for (int d = to.rank() - 1; d >= 0; --d) {
            const int64_t k = rest % to[d] - before[d];
            inside = inside && k >= 0 && k < shape[d];
            rest /= to[d];
            at += k * step;
            step *= shape[d];
          }
          seen += inside;
          wrong += all[i] != (inside ? values[static_cast<size_t>(at)] : number);
        }
        CHECK(wrong == 0);
        CHECK(seen == values.size());
        if (shape.rank() == 2) CHECK(values_of(padded(stored_transposed(x))) == all);
      }
    }
  }
}

TEST_CASE("Cpu: data that leaves a tensor is not written by it later") {
  HostHandle x = CpuOps::float_full({3}, 1.0, f32, Device());
  const TensorData data = CpuOps::float_into_data(x);
  CpuOps::float_fill(x, 2.0);
  CHECK(data.to_doubles() == std::vector<double>{1, 1, 1});
}
