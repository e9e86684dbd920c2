// Shape: the sizes of a tensor's dims, held inline. Strides have the same form.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace kiln {

// The most dims a tensor may have.
inline constexpr int kMaxRank = 12;

namespace detail {
[[noreturn]] void throw_rank_error(size_t rank);
// A negative index of `rank` numbers, counted from the end. Throws IndexError for any other one
// that they do not have.
[[gnu::cold]] int index_from_end(int i, int rank);
// The stride of the dim outside one of `size` elements that lie `stride` apart; wraps as unsigned.
int64_t next_stride(int64_t stride, int64_t size);
}  // namespace detail

// Up to kMaxRank 64-bit numbers without allocation. One type serves shapes, strides and lists of
// dims.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) { assign(dims.begin(), dims.size()); }
  Shape(std::span<const int64_t> dims) { assign(dims.data(), dims.size()); }
  Shape(const std::vector<int64_t>& dims) { assign(dims.data(), dims.size()); }
  Shape(const Shape& other) { *this = other; }
  Shape& operator=(const Shape& other) {
    rank_ = other.rank_;
    for (int i = 0; i < rank_; ++i) dims_[i] = other.dims_[i];
    return *this;
  }

  // `rank` dims, each of size `value`.
  static Shape filled(int rank, int64_t value) {
    if (rank < 0 || rank > kMaxRank) detail::throw_rank_error(static_cast<size_t>(rank));
    Shape s;
    s.rank_ = rank;
    for (int i = 0; i < rank; ++i) s.dims_[i] = value;
    return s;
  }

  int rank() const { return rank_; }
  size_t size() const { return static_cast<size_t>(rank_); }
  bool empty() const { return rank_ == 0; }
  // A negative index counts from the end. Throws IndexError for a dim that is not there.
  int64_t operator[](int i) const { return dims_[index(i)]; }
  int64_t& operator[](int i) { return dims_[index(i)]; }
  int64_t back() const { return dims_[index(rank_ - 1)]; }
  int64_t& back() { return dims_[index(rank_ - 1)]; }
  const int64_t* begin() const { return dims_; }
  const int64_t* end() const { return dims_ + rank_; }
  int64_t* begin() { return dims_; }
  int64_t* end() { return dims_ + rank_; }
  const int64_t* data() const { return dims_; }
  operator std::span<const int64_t>() const { return {dims_, size()}; }

  // The product of the sizes; 1 for a 0-d tensor.
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= dims_[i];
    return n;
  }

  void push_back(int64_t v) {
    if (rank_ == kMaxRank) detail::throw_rank_error(kMaxRank + 1);
    dims_[rank_++] = v;
  }
  void insert(int at, int64_t v) {
    if (rank_ == kMaxRank) detail::throw_rank_error(kMaxRank + 1);
    for (int i = rank_; i > at; --i) dims_[i] = dims_[i - 1];
    dims_[at] = v;
    ++rank_;
  }
  void erase(int at) {
    for (int i = at; i + 1 < rank_; ++i) dims_[i] = dims_[i + 1];
    --rank_;
  }
  bool contains(int64_t v) const {
    for (int64_t d : *this) {
      if (d == v) return true;
    }
    return false;
  }
  std::vector<int64_t> to_vector() const { return {begin(), end()}; }

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i) {
      if (a.dims_[i] != b.dims_[i]) return false;
    }
    return true;
  }

 private:
  // One comparison finds an index of either side; in a loop over the dims it is the loop's own.
  int index(int i) const {
    if (static_cast<unsigned>(i) >= static_cast<unsigned>(rank_)) [[unlikely]]
      return detail::index_from_end(i, rank_);
    return i;
  }
  void assign(const int64_t* dims, size_t n) {
    if (n > kMaxRank) detail::throw_rank_error(n);
    rank_ = static_cast<int>(n);
    for (int i = 0; i < rank_; ++i) dims_[i] = dims[i];
  }

  int64_t dims_[kMaxRank];
  int rank_ = 0;
};

using Strides = Shape;
// A list of dims, e.g. those that a reduction removes. Below the tensor layer they are normalized:
// 0 <= dim < rank.
using Dims = Shape;

// "[2, 3]".
std::string to_string(const Shape& shape);

// Row-major strides, in elements. Those of a shape that no memory holds wrap: who allocates refuses
// it.
Strides contiguous_strides(const Shape& shape);
// Whether these strides describe row-major memory without gaps (dims of size 1 do not matter; empty
// counts).
bool is_contiguous(const Shape& shape, const Strides& strides);

// The shape that `a` and `b` broadcast to by NumPy's rule. Throws ShapeError naming `op` where they
// do not.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);
// Whether `from` can be expanded to `to`.
bool broadcasts_to(const Shape& from, const Shape& to);

// The shape of a reduction over `dims` (normalized).
Shape reduced_shape(const Shape& shape, const Dims& dims, bool keepdim);

// Turns a negative dim into its positive form. Throws IndexError naming `op`. A 0-d tensor accepts
// -1 and 0.
int normalize_dim(const char* op, int64_t dim, int rank);
// The same for a list; throws ValueError when a dim appears twice.
Dims normalize_dims(const char* op, const Dims& dims, int rank);
// 0, 1, ..., rank - 1.
Dims all_dims(int rank);

// The number of elements, or ShapeError when a size is negative or the product overflows 63 bits.
// Zeros count as ones in that test, so that strides cannot overflow either.
int64_t checked_numel(const char* op, const Shape& shape);

}  // namespace kiln
