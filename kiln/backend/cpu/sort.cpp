// sort, argsort: stable, by radix.
//
// Note [Radix sort]
// Values become unsigned keys of the same order, and travel with their index. A pass distributes
// all entries by 11 bits of the key, from the low bits up, and keeps the order of what falls
// together: three passes for 32 bits. A long row is cut into chunks that count and distribute by
// themselves; where an entry goes depends on the entries before it and not on the chunks, so the
// result is the same at any number of threads.
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/scratch.h"

namespace kiln {
namespace cpu {
namespace {

constexpr int kDigitBits = 11;
constexpr uint32_t kDigits = 1u << kDigitBits;
// Below this a comparison sort is faster than clearing the counters.
constexpr int64_t kShortRow = 1024;
constexpr int64_t kChunk = 65536;
constexpr int64_t kMostChunks = 64;

template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
KeyOf<T> key_of(T value) {
  using Key = KeyOf<T>;
  constexpr Key kTop = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (std::is_floating_point_v<T>) {
    if (value != value) return ~Key{0};
    const Key bits = std::bit_cast<Key>(value == T(0) ? T(0) : value);
    return (bits & kTop) != 0 ? ~bits : bits | kTop;
  } else {
    return static_cast<Key>(static_cast<std::make_signed_t<Key>>(value)) ^ kTop;
  }
}

template <class Key>
struct Entry {
  Key key;
  uint32_t index;
};

template <class Key>
class RadixSort {
 public:
  // Sorts `a` by key with the help of `b`; both hold n entries. The result is where it returns.
  static Entry<Key>* run(Entry<Key>* a, Entry<Key>* b, int64_t n) {
    if (n <= kShortRow) {
      std::sort(a, a + n, [](const Entry<Key>& x, const Entry<Key>& y) {
        return x.key != y.key ? x.key < y.key : x.index < y.index;
      });
      return a;
    }
    const int64_t chunks = std::min(kMostChunks, (n + kChunk - 1) / kChunk);
    const int64_t chunk = (n + chunks - 1) / chunks;
    const Scratch<uint32_t> counts(chunks * kDigits);
    for (unsigned shift = 0; shift < 8 * sizeof(Key); shift += kDigitBits) {
      parallel_for(n, chunk, [&](int64_t begin, int64_t end) {
        uint32_t* count = counts.get() + begin / chunk * kDigits;
        std::fill_n(count, kDigits, 0u);
        for (int64_t i = begin; i < end; ++i) ++count[digit(a[i].key, shift)];
      });
      if (!counts_to_places(counts.get(), chunks, n)) continue;
      parallel_for(n, chunk, [&](int64_t begin, int64_t end) {
        uint32_t* place = counts.get() + begin / chunk * kDigits;
        for (int64_t i = begin; i < end; ++i) b[place[digit(a[i].key, shift)]++] = a[i];
      });
      std::swap(a, b);
    }
    return a;
  }

 private:
  static uint32_t digit(Key key, unsigned shift) {
    return static_cast<uint32_t>(key >> shift) & (kDigits - 1);
  }
  // From how often each chunk holds each digit to where its first one goes. False when all entries
  // have the same digit, and stay where they are.
  static bool counts_to_places(uint32_t* counts, int64_t chunks, int64_t n) {
    uint32_t place = 0;
    for (uint32_t d = 0; d < kDigits; ++d) {
      const uint32_t first = place;
      for (int64_t c = 0; c < chunks; ++c) {
        uint32_t& count = counts[c * kDigits + d];
        const uint32_t next = place + count;
        count = place;
        place = next;
      }
      if (place - first == static_cast<uint32_t>(n)) return false;
    }
    return true;
  }
};

// `values` may be null.
template <class T>
void sort_row(const T* row, int64_t n, bool descending, T* values, int64_t* indices) {
  using Key = KeyOf<T>;
  const Scratch<Entry<Key>> entries(n);
  const Scratch<Entry<Key>> others(n > kShortRow ? n : 0);
  const Key flip = descending ? ~Key{0} : Key{0};
  parallel_for(n, kChunk, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      entries[i] = {key_of(row[i]) ^ flip, static_cast<uint32_t>(i)};
    }
  });
  const Entry<Key>* sorted = RadixSort<Key>::run(entries.get(), others.get(), n);
  parallel_for(n, kChunk, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      indices[i] = sorted[i].index;
      if (values != nullptr) values[i] = row[sorted[i].index];
    }
  });
}

template <class T>
void sort_rows(const HostTensor& x, int64_t n, bool descending, T* values, int64_t* indices) {
  const T* from = x.data_as<const T>();
  const auto one = [&](int64_t r) {
    sort_row(from + r * n, n, descending, values == nullptr ? nullptr : values + r * n,
             indices + r * n);
  };
  const int64_t rows = x.numel() / n;
  if (n > kChunk) {
    for (int64_t r = 0; r < rows; ++r) one(r);
    return;
  }
  parallel_for(rows, std::max<int64_t>(1, kGrain / 8 / n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) one(r);
  });
}

// x with `dim` last, and the way back.
Dims dim_last(int rank, int dim) {
  Dims dims = all_dims(rank);
  for (int i = dim; i + 1 < rank; ++i) std::swap(dims[i], dims[i + 1]);
  return dims;
}
Dims inverse(const Dims& dims) {
  Dims out = dims;
  for (int i = 0; i < dims.rank(); ++i) out[static_cast<int>(dims[i])] = i;
  return out;
}

struct Sorted {
  HostHandle values;  // null when not wanted
  HostHandle indices;
};

Sorted sort(const HostHandle& x, int dim, bool descending, bool with_values) {
  const int rank = x->shape().rank();
  if (rank > 0 && dim != rank - 1) {
    const Dims order = dim_last(rank, dim);
    const Dims back = inverse(order);
    Sorted moved = sort(host::permute(x, order), rank - 1, descending, with_values);
    if (with_values) moved.values = contiguous(host::permute(moved.values, back));
    return {std::move(moved.values), contiguous(host::permute(moved.indices, back))};
  }
  const int64_t n = rank == 0 ? 1 : x->shape()[dim];
  if (n > std::numeric_limits<uint32_t>::max()) {
    throw_error<ShapeError>("sort: rows are too long; got ", n, "; expected less than 2^32");
  }
  Sorted out;
  out.indices = host::empty(x->shape(), DType::i64, x->device());
  if (with_values) out.values = host::empty(x->shape(), x->dtype(), x->device());
  if (x->numel() == 0) return out;
  const HostHandle source = contiguous(x);
  visit_dtype("sort", x->dtype(), [&]<class T>() {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      sort_rows<T>(*source, n, descending, with_values ? out.values->data_as<T>() : nullptr,
                   out.indices->data_as<int64_t>());
    }
  });
  return out;
}

}  // namespace
}  // namespace cpu

std::pair<HostHandle, HostHandle> CpuBasic::float_sort(Arg<HostHandle> x, int dim,
                                                       bool descending) {
  const DType dtype = x->dtype();
  if (cpu::convert_of(dtype) != cpu::Convert::none) {
    auto [values, indices] = float_sort(Cpu::float_cast(x, DType::f32), dim, descending);
    return {Cpu::float_cast(std::move(values), dtype), std::move(indices)};
  }
  cpu::Sorted out = cpu::sort(x, dim, descending, /*with_values=*/true);
  return {std::move(out.values), std::move(out.indices)};
}
HostHandle CpuBasic::int_argsort(Arg<HostHandle> x, int dim, bool descending) {
  return cpu::sort(x, dim, descending, /*with_values=*/false).indices;
}

}  // namespace kiln
