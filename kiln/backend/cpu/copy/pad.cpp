// pad: a tensor inside a larger one, whose other elements have a value.
#include <algorithm>
#include <cstring>

#include "kiln/backend/cpu/copy/copy_kernels.h"
#include "kiln/backend/cpu/copy/element.h"
#include "kiln/backend/cpu/copy/items.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace cpu {
namespace {

// Rows of so many bytes together are written at once, and then what lies between them; a row that
// is longer is written by itself.
constexpr int64_t kBytesAtOnce = 16 * 1024;

// Writes elements of `item` bytes, of which `pattern` has as many as go into 8.
struct Filler {
  uint64_t pattern;
  int64_t item;

  void operator()(char* to, int64_t bytes) const {
    if (bytes > 64) {
      if (pattern == 0) {
        std::memset(to, 0, static_cast<size_t>(bytes));
      } else {
        copy_kernels().fill(pattern, to, bytes);
      }
    } else if (bytes >= 8) {
      for (int64_t i = 0; i + 8 <= bytes; i += 8) std::memcpy(to + i, &pattern, 8);
      std::memcpy(to + bytes - 8, &pattern, 8);  // may lie over the one before
    } else if (bytes == 4) {
      std::memcpy(to, &pattern, 4);
    } else {
      std::memcpy(to, &pattern, static_cast<size_t>(bytes));
    }
  }
};

// The rows of the last padded dim, whose elements are the dims behind it; in bytes.
struct Rows {
  Shape from, to, before;  // of the dims before it
  int64_t gap_before, kept, width;
  const char* source;
  char* target;
  Filler fill;

  // Rows [begin, begin + count) of the result, all of one place in the dims but the last of `to`.
  // `place`: the row of the source that would be the first of that place; -1 when there is none.
  void write(int64_t begin, int64_t count, int64_t first, int64_t place) const {
    char* out = target + begin * width;
    if (to.rank() == 0) return inside(source, out, count);
    const int d = to.rank() - 1;
    const int64_t top = place < 0 ? count : std::clamp<int64_t>(before[d] - first, 0, count);
    const int64_t end =
        place < 0 ? count : std::clamp<int64_t>(before[d] + from[d] - first, top, count);
    if (top > 0) fill(out, top * width);
    if (end > top) {
      inside(source + (place + first + top - before[d]) * kept, out + top * width, end - top);
    }
    if (count > end) fill(out + end * width, (count - end) * width);
  }

  // Rows that are in the source.
  void inside(const char* values, char* out, int64_t count) const {
    const int64_t gap = width - kept;
    const int64_t at_once = std::max<int64_t>(1, kBytesAtOnce / width);
    for (int64_t r = 0; r < count; r += at_once) {
      const int64_t rows = std::min(at_once, count - r);
      char* row = out + r * width;
      if (gap_before > 0) fill(row, gap_before);
      copy_kernels().copy_rows(values + r * kept, kept, row + gap_before, width, kept, rows, false);
      // What is behind a row and before the next lies together.
      char* end = row + gap_before + kept;
      if (gap > 0) {
        for (int64_t i = 0; i + 1 < rows; ++i, end += width) fill(end, gap);
      }
      if (gap > gap_before) fill(row + rows * width - (gap - gap_before), gap - gap_before);
    }
  }

  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < to.rank(); ++d) n *= to[d];
    return n;
  }

  void run(int64_t begin, int64_t end) const {
    const int rank = to.rank();
    for (int64_t r = begin; r < end;) {
      const int64_t of_dim = rank > 0 ? to[rank - 1] : 1, first = r % of_dim;
      const int64_t place = rank > 0 ? place_of(r / of_dim, rank - 1, from[rank - 1]) : 0;
      const int64_t rows = std::min(of_dim - first, end - r);
      write(r, rows, first, place);
      r += rows;
    }
  }

  // One row, by all threads.
  void run_long(int64_t r) const {
    char* const row = target + r * width;
    const int64_t place = place_of(r, to.rank(), 1);
    const char* const values = place < 0 ? nullptr : source + place * kept;
    parallel_for(width / fill.item, kGrain, [&](int64_t from_item, int64_t to_item) {
      const int64_t begin = from_item * fill.item, end = to_item * fill.item;
      const int64_t first = values == nullptr ? end : std::clamp(gap_before, begin, end);
      const int64_t last = values == nullptr ? end : std::clamp(gap_before + kept, first, end);
      if (first > begin) fill(row + begin, first - begin);
      if (last > first) {
        copy_kernels().copy(values + first - gap_before, row + first, last - first);
      }
      if (end > last) fill(row + last, end - last);
    });
  }

  // Which row of the source lies at place r of the first `dims` dims, of which one has `step` rows;
  // -1 when there is none.
  int64_t place_of(int64_t r, int dims, int64_t step) const {
    int64_t place = 0;
    for (int d = dims - 1; d >= 0; --d) {
      const int64_t i = r % to[d] - before[d];
      if (i < 0 || i >= from[d]) return -1;
      place += i * step;
      r /= to[d];
      step *= from[d];
    }
    return place;
  }
};

HostHandle padded_with(const HostHandle& x, const Shape& before, const Shape& behind,
                       Scalar value) {
  const Shape from = x->shape();
  Shape to = from;
  for (int d = 0; d < to.rank(); ++d) to[d] += before[d] + behind[d];
  const Element element(value, x->dtype());
  const auto item = static_cast<int64_t>(size_of(x->dtype()));
  if (!x->is_contiguous() || x->numel() == 0) {
    HostHandle out = Cpu::float_full(to, value, x->dtype(), x->device());
    HostHandle part = out;
    for (int d = 0; d < to.rank(); ++d) {
      if (from[d] != to[d]) part = host::slice(part, d, Range{before[d], before[d] + from[d], 1});
    }
    if (x->numel() != 0) copy_elements(*x, *part);
    return out;
  }
  HostHandle out = host::empty(to, x->dtype(), x->device());
  int last = from.rank() - 1;
  while (last > 0 && from[last] == to[last]) --last;
  int64_t inner = item;
  for (int d = last + 1; d < from.rank(); ++d) inner *= from[d];
  Rows rows;
  for (int d = 0; d < last; ++d) {
    rows.from.push_back(from[d]);
    rows.to.push_back(to[d]);
    rows.before.push_back(before[d]);
  }
  rows.gap_before = last < 0 ? 0 : before[last] * inner;
  rows.kept = last < 0 ? inner : from[last] * inner;
  rows.width = last < 0 ? inner : to[last] * inner;
  rows.source = x->data_as<const char>();
  rows.target = out->data_as<char>();
  rows.fill = {repeated(element.bytes, item), item};
  const int64_t count = rows.count();
  if (rows.width > kBytesAtOnce * 4) {
    for (int64_t r = 0; r < count; ++r) rows.run_long(r);
  } else {
    parallel_for(count, std::max<int64_t>(1, kGrain * 4 / rows.width),
                 [&](int64_t begin, int64_t end) { rows.run(begin, end); });
  }
  return out;
}

}  // namespace
}  // namespace cpu

HostHandle CpuOps::float_pad(Arg<HostHandle> x, const Shape& before, const Shape& behind,
                             Scalar value) {
  return cpu::padded_with(x.get(), before, behind, value);
}
HostHandle CpuOps::int_pad(Arg<HostHandle> x, const Shape& before, const Shape& behind,
                           Scalar value) {
  return cpu::padded_with(x.get(), before, behind, value);
}
HostHandle CpuOps::bool_pad(Arg<HostHandle> x, const Shape& before, const Shape& behind,
                            Scalar value) {
  return cpu::padded_with(x.get(), before, behind, Scalar(value.to_bool()));
}

}  // namespace kiln
