// argtopk, argplace: what sorting would bring to some places, without sorting the rest.
//
// Note [Radix selection]
// One pass over a row counts the top 11 bits of its keys. From the counts it is known in which
// digit the place lies that is asked for; only the few entries with that digit are then looked at
// again. Entries are ordered by key and then by index, so the answer is that of a stable sort.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/index/sort_keys.h"

namespace kiln {
namespace cpu {
namespace {

// Rows up to this length are selected from as they are.
constexpr int64_t kPlainRow = 2048;

template <class Key>
constexpr unsigned kTopShift = 8 * sizeof(Key) - kDigitBits;

// A long row as keys and the counts of their top digits, for each chunk.
template <class T>
class DigitCounts {
 public:
  using Key = KeyOf<T>;

  DigitCounts(const T* row, int64_t n, Key flip)
      : row_(row), n_(n), flip_(flip), counts_(chunks() * kDigits) {
    each_chunk([&](int64_t c, int64_t begin, int64_t end) {
      // Two sets of counters: equal neighbours would wait for each other.
      uint32_t other[kDigits] = {};
      uint32_t* count = counts_.get() + c * kDigits;
      std::fill_n(count, kDigits, 0u);
      int64_t i = begin;
      for (; i + 2 <= end; i += 2) {
        ++count[digit(i)];
        ++other[digit(i + 1)];
      }
      if (i < end) ++count[digit(i)];
      for (uint32_t d = 0; d < kDigits; ++d) count[d] += other[d];
    });
  }

  // The digit in which the entry stands that sorting brings to `place`, and how many entries have
  // smaller digits.
  std::pair<uint32_t, int64_t> digit_of_place(int64_t place) const {
    int64_t before = 0;
    for (uint32_t d = 0;; ++d) {
      const int64_t here = total(d);
      if (place < before + here) return {d, before};
      before += here;
    }
  }

  int64_t total(uint32_t d) const {
    int64_t sum = 0;
    for (int64_t c = 0; c < chunks(); ++c) sum += counts_[c * kDigits + d];
    return sum;
  }

  // The entries with digit `d`, in their order.
  void collect(uint32_t d, Entry<Key>* out) const {
    gather([=](uint32_t x) { return x == d; }, [&](int64_t c) { return counts_[c * kDigits + d]; },
           out);
  }
  // Those with smaller digits.
  void collect_below(uint32_t d, Entry<Key>* out) const {
    gather([=](uint32_t x) { return x < d; },
           [&](int64_t c) {
             int64_t sum = 0;
             for (uint32_t k = 0; k < d; ++k) sum += counts_[c * kDigits + k];
             return sum;
           },
           out);
  }

 private:
  int64_t chunks() const { return (n_ + kSortChunk - 1) / kSortChunk; }
  Key key(int64_t i) const { return key_of(row_[i]) ^ flip_; }
  uint32_t digit(int64_t i) const { return static_cast<uint32_t>(key(i) >> kTopShift<Key>); }

  template <class F>
  void each_chunk(F&& f) const {
    parallel_for(n_, kSortChunk,
                 [&](int64_t begin, int64_t end) { f(begin / kSortChunk, begin, end); });
  }
  template <class Wanted, class Count>
  void gather(Wanted wanted, Count count, Entry<Key>* out) const {
    const Scratch<int64_t> firsts(chunks());
    int64_t sum = 0;
    for (int64_t c = 0; c < chunks(); ++c) {
      firsts[c] = sum;
      sum += count(c);
    }
    each_chunk([&](int64_t c, int64_t begin, int64_t end) {
      Entry<Key>* to = out + firsts[c];
      for (int64_t i = begin; i < end; ++i) {
        if (wanted(digit(i))) *to++ = {key(i), static_cast<uint32_t>(i)};
      }
    });
  }

  const T* row_;
  int64_t n_;
  Key flip_;
  Scratch<uint32_t> counts_;
};

// Entries in any order; of those with one key, the first comes first.
template <class Key>
void sort_entries(Entry<Key>* entries, int64_t n, int64_t* indices) {
  if (n <= kShortRow) {
    std::sort(entries, entries + n);
    for (int64_t i = 0; i < n; ++i) indices[i] = entries[i].index;
    return;
  }
  const Scratch<Entry<Key>> others(n);
  const Entry<Key>* sorted = RadixSort<Key>::run(entries, others.get(), n);
  for (int64_t i = 0; i < n; ++i) indices[i] = sorted[i].index;
}

template <class T>
void fill_entries(const T* row, int64_t n, KeyOf<T> flip, Entry<KeyOf<T>>* entries) {
  parallel_for(n, kSortChunk, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      entries[i] = {key_of(row[i]) ^ flip, static_cast<uint32_t>(i)};
    }
  });
}

// Up to so many, the first entries of a row are kept in a heap: nearly all others are larger than
// the largest of them, which one comparison tells.
constexpr int64_t kHeap = 256;
constexpr int64_t kLargeHeap = 4096;

bool fits_heap(int64_t n, int64_t k) {
  if (n <= 4 * kPairedRow && k <= n / 8) return true;
  return k <= kHeap ? k <= n / 16 : k <= kLargeHeap && k <= n / 256;
}

// False when the row, in an order that brings in one entry after another, is not worth a heap.
template <class T>
bool heap_of_row(const T* row, int64_t n, int64_t k, KeyOf<T> flip, int64_t* indices) {
  const Scratch<Entry<KeyOf<T>>> heap(k);
  Entry<KeyOf<T>>* end = heap.get() + k;
  for (int64_t i = 0; i < k; ++i) heap[i] = {key_of(row[i]) ^ flip, static_cast<uint32_t>(i)};
  std::make_heap(heap.get(), end);
  int64_t left = n / 16 + 32 * k;
  for (int64_t i = k; i < n; ++i) {
    const KeyOf<T> key = key_of(row[i]) ^ flip;
    if (key >= heap[0].key) continue;  // of equals the earlier one stays
    if (--left == 0 && k > kHeap) return false;
    std::pop_heap(heap.get(), end);
    end[-1] = {key, static_cast<uint32_t>(i)};
    std::push_heap(heap.get(), end);
  }
  std::sort_heap(heap.get(), end);
  for (int64_t i = 0; i < k; ++i) indices[i] = heap[i].index;
  return true;
}

// The first k entries of the sorted row.
template <class T>
void top_of_row(const T* row, int64_t n, int64_t k, bool largest, int64_t* indices) {
  using Key = KeyOf<T>;
  if (k == 0) return;
  const Key flip = largest ? ~Key{0} : Key{0};
  if (n <= kPairedRow) {
    uint32_t ranks[kPairedRow];
    ranks_of_row(row, n, flip, ranks);
    for (int64_t i = 0; i < n; ++i) {
      if (ranks[i] < k) indices[ranks[i]] = i;
    }
    return;
  }
  if (fits_heap(n, k) && heap_of_row(row, n, k, flip, indices)) return;
  if (n <= kPlainRow || k > n / 4) {
    const Scratch<Entry<Key>> entries(n);
    fill_entries(row, n, flip, entries.get());
    if (k < n && n <= kPlainRow) {
      std::nth_element(entries.get(), entries.get() + k, entries.get() + n);
      return sort_entries(entries.get(), k, indices);
    }
    const Scratch<Entry<Key>> others(n);
    const Entry<Key>* sorted = RadixSort<Key>::run(entries.get(), others.get(), n);
    for (int64_t i = 0; i < k; ++i) indices[i] = sorted[i].index;
    return;
  }
  const DigitCounts<T> counts(row, n, flip);
  const auto [digit, before] = counts.digit_of_place(k - 1);
  const int64_t here = counts.total(digit);
  const Scratch<Entry<Key>> entries(before + here);
  counts.collect_below(digit, entries.get());
  Entry<Key>* last = entries.get() + before;
  counts.collect(digit, last);
  if (k < before + here) std::nth_element(last, entries.get() + k, last + here);
  sort_entries(entries.get(), k, indices);
}

// A long row can be looked at once for each of a few places, rather than be sorted.
constexpr int64_t kFewPlaces = 6;

// indices[q] for q < count: where the entry stands that sorting brings to places[q].
template <class T>
void places_in_row(const T* row, int64_t n, const int64_t* places, int64_t count,
                   int64_t* indices) {
  using Key = KeyOf<T>;
  if (n <= kPairedRow) {
    uint32_t ranks[kPairedRow];
    int64_t sorted[kPairedRow];
    ranks_of_row(row, n, Key{0}, ranks);
    for (int64_t i = 0; i < n; ++i) sorted[ranks[i]] = i;
    for (int64_t q = 0; q < count; ++q) indices[q] = sorted[places[q]];
    return;
  }
  if (n <= kPlainRow || count > kFewPlaces) {
    const Scratch<Entry<Key>> entries(n);
    fill_entries(row, n, Key{0}, entries.get());
    Entry<Key>* all = entries.get();
    if (count > kFewPlaces) {
      const Scratch<Entry<Key>> others(n);
      const Entry<Key>* sorted = RadixSort<Key>::run(all, others.get(), n);
      for (int64_t q = 0; q < count; ++q) indices[q] = sorted[places[q]].index;
      return;
    }
    for (int64_t q = 0; q < count; ++q) {
      std::nth_element(all, all + places[q], all + n);
      indices[q] = all[places[q]].index;
    }
    return;
  }
  const DigitCounts<T> counts(row, n, Key{0});
  for (int64_t q = 0; q < count; ++q) {
    const auto [digit, before] = counts.digit_of_place(places[q]);
    const int64_t here = counts.total(digit);
    const Scratch<Entry<Key>> entries(here);
    counts.collect(digit, entries.get());
    Entry<Key>* wanted = entries.get() + (places[q] - before);
    std::nth_element(entries.get(), wanted, entries.get() + here);
    indices[q] = wanted->index;
  }
}

// Calls each(row of x, row number) for every row along the last dim of x, which is row-major.
template <class T, class Each>
void for_each_row(const HostTensor& x, int64_t n, Each&& each) {
  const T* from = x.data_as<const T>();
  const int64_t rows = x.numel() / n;
  if (n > kSortChunk) {
    for (int64_t r = 0; r < rows; ++r) each(from + r * n, r);
    return;
  }
  parallel_for(rows, std::max<int64_t>(1, kGrain / 8 / n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) each(from + r * n, r);
  });
}

void check_row(const char* op, int64_t n) {
  if (n > std::numeric_limits<uint32_t>::max()) {
    throw_error<ShapeError>(op, ": rows are too long; got ", n, "; expected less than 2^32");
  }
}

template <class F>
void visit_number(const char* op, DType dtype, F&& f) {
  visit_dtype(op, dtype, [&]<class T>() {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      f.template operator()<T>();
    }
  });
}

HostHandle in_float(const HostHandle& x) {
  return convert_of(x->dtype()) != Convert::none ? Cpu::float_cast(x, DType::f32) : x;
}

HostHandle argtopk(const HostHandle& x, int64_t k, int dim, bool largest) {
  const int rank = x->shape().rank();
  if (dim != rank - 1) {
    const Dims order = dim_last(rank, dim);
    return contiguous(
        host::permute(argtopk(host::permute(x, order), k, rank - 1, largest), inverse(order)));
  }
  const int64_t n = x->shape()[dim];
  check_row("topk", n);
  Shape shape = x->shape();
  shape[dim] = k;
  HostHandle out = host::empty(shape, DType::i64, x->device());
  if (out->numel() == 0) return out;
  const HostHandle source = contiguous(in_float(x));
  auto* to = out->data_as<int64_t>();
  visit_number("topk", source->dtype(), [&]<class T>() {
    for_each_row<T>(*source, n,
                    [&](const T* row, int64_t r) { top_of_row(row, n, k, largest, to + r * k); });
  });
  return out;
}

HostHandle argplace(const HostHandle& x, const HostHandle& places, int dim) {
  const int rank = x->shape().rank();
  if (dim != rank - 1) {
    const Dims order = dim_last(rank, dim);
    return contiguous(host::permute(
        argplace(host::permute(x, order), host::permute(places, order), rank - 1), inverse(order)));
  }
  const int64_t n = x->shape()[dim];
  check_row("argplace", n);
  HostHandle out = host::empty(places->shape(), DType::i64, x->device());
  if (out->numel() == 0) return out;
  const HostHandle source = contiguous(in_float(x));
  const HostHandle wanted = contiguous(places);
  const auto* from = wanted->data_as<const int64_t>();
  const int64_t count = places->shape()[dim];
  for (int64_t i = 0; i < wanted->numel(); ++i) {
    if (from[i] < 0 || from[i] >= n) {
      throw_error<IndexError>("argplace: place out of range; got ", from[i],
                              "; expected 0 <= place < ", n);
    }
  }
  auto* to = out->data_as<int64_t>();
  visit_number("argplace", source->dtype(), [&]<class T>() {
    for_each_row<T>(*source, n, [&](const T* row, int64_t r) {
      places_in_row(row, n, from + r * count, count, to + r * count);
    });
  });
  return out;
}

// ---- Searches

// The first place in [0, n) whose edge is not below.
template <class T, class Below>
int64_t first_not_below(const T* edges, int64_t n, Below&& below) {
  const T* base = edges;
  while (n > 1) {
    // A product, since half of the branches would be guessed wrong.
    const int64_t half = n / 2;
    base += half * static_cast<int64_t>(below(base[half - 1]));
    n -= half;
  }
  return base - edges + (n == 1 && below(*base) ? 1 : 0);
}

HostHandle searchsorted(const HostHandle& sorted_arg, const HostHandle& values_arg, bool right) {
  const HostHandle sorted = contiguous(in_float(sorted_arg));
  const HostHandle values = contiguous(in_float(values_arg));
  HostHandle out = host::empty(values->shape(), DType::i64, values->device());
  auto* to = out->data_as<int64_t>();
  const int64_t n = sorted->shape().back();
  const bool one_row = sorted->shape().rank() == 1;
  const int64_t m = one_row ? std::max<int64_t>(values->numel(), 1) : values->shape().back();
  visit_number("searchsorted", sorted->dtype(), [&]<class T>() {
    const T* edges = sorted->data_as<const T>();
    const T* wanted = values->data_as<const T>();
    parallel_for(values->numel(), kGrain / 8, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T value = wanted[i];
        const T* row = edges + (one_row ? 0 : i / m * n);
        if (value != value) {  // NaN is larger than everything
          to[i] = right ? n : first_not_below(row, n, [](T edge) { return edge == edge; });
        } else if (right) {
          to[i] = first_not_below(row, n, [=](T edge) { return edge <= value; });
        } else {
          to[i] = first_not_below(row, n, [=](T edge) { return edge < value; });
        }
      }
    });
  });
  return out;
}

}  // namespace
}  // namespace cpu

HostHandle CpuOps::float_argtopk(Arg<HostHandle> x, int64_t k, int dim, bool largest) {
  return cpu::argtopk(x, k, dim, largest);
}
HostHandle CpuOps::int_argtopk(Arg<HostHandle> x, int64_t k, int dim, bool largest) {
  return cpu::argtopk(x, k, dim, largest);
}
HostHandle CpuOps::float_argplace(Arg<HostHandle> x, Arg<HostHandle> places, int dim) {
  return cpu::argplace(x, places, dim);
}
HostHandle CpuOps::int_argplace(Arg<HostHandle> x, Arg<HostHandle> places, int dim) {
  return cpu::argplace(x, places, dim);
}
HostHandle CpuOps::float_searchsorted(Arg<HostHandle> sorted, Arg<HostHandle> values, bool right) {
  return cpu::searchsorted(sorted, values, right);
}
HostHandle CpuOps::int_searchsorted(Arg<HostHandle> sorted, Arg<HostHandle> values, bool right) {
  return cpu::searchsorted(sorted, values, right);
}

}  // namespace kiln
