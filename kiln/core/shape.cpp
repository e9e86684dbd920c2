#include "kiln/core/shape.h"

#include <algorithm>

#include "kiln/core/error.h"

namespace kiln {

void detail::throw_rank_error(size_t rank) {
  throw_error<ShapeError>("Shape: too many dims; got ", static_cast<int64_t>(rank),
                          "; expected 0 to ", kMaxRank);
}

int detail::index_from_end(int i, int rank) {
  if (i < -rank || i >= rank) {
    throw_error<IndexError>("Shape: there is no such dim; got index ", i, " of ", rank, " dims");
  }
  return i + rank;
}

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (int i = 0; i < shape.rank(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(shape[i]);
  }
  return out + "]";
}

int64_t detail::next_stride(int64_t stride, int64_t size) {
  const auto steps = static_cast<uint64_t>(std::max<int64_t>(size, 1));
  return static_cast<int64_t>(static_cast<uint64_t>(stride) * steps);
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides = Shape::filled(shape.rank(), 1);
  for (int i = shape.rank() - 2; i >= 0; --i) {
    strides[i] = detail::next_stride(strides[i + 1], shape[i + 1]);
  }
  return strides;
}

bool is_contiguous(const Shape& shape, const Strides& strides) {
  if (shape.contains(0)) return true;
  int64_t expected = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  const int offset = longer.rank() - shorter.rank();
  Shape out = longer;
  for (int i = 0; i < shorter.rank(); ++i) {
    const int64_t x = longer[i + offset];
    const int64_t y = shorter[i];
    if (x == y || y == 1) continue;
    if (x != 1) {
      throw_error<ShapeError>(op, ": shapes do not broadcast; got ", a, " and ", b,
                              "; expected equal sizes or 1 in every dim counted from the last");
    }
    out[i + offset] = y;
  }
  checked_numel(op, out);  // the operands may be expanded views, much larger than their memory
  return out;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  const int offset = to.rank() - from.rank();
  if (offset < 0) return false;
  for (int i = 0; i < from.rank(); ++i) {
    if (from[i] != to[i + offset] && from[i] != 1) return false;
  }
  return true;
}

Shape reduced_shape(const Shape& shape, const Dims& dims, bool keepdim) {
  Shape out;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!dims.contains(i)) {
      out.push_back(shape[i]);
    } else if (keepdim) {
      out.push_back(1);
    }
  }
  return out;
}

int normalize_dim(const char* op, int64_t dim, int rank) {
  const int64_t range = std::max(rank, 1);
  if (dim < -range || dim >= range) {
    throw_error<IndexError>(op, ": dim out of range; got dim ", dim, " for a tensor of rank ", rank,
                            "; expected ", -range, " to ", range - 1);
  }
  return static_cast<int>(dim < 0 ? dim + range : dim);
}

Dims normalize_dims(const char* op, const Dims& dims, int rank) {
  Dims out;
  for (int64_t dim : dims) {
    const int normalized = normalize_dim(op, dim, rank);
    if (out.contains(normalized)) {
      throw_error<ValueError>(op, ": dim ", normalized, " appears twice; got dims ", dims,
                              "; expected each dim once");
    }
    out.push_back(normalized);
  }
  return out;
}

Dims all_dims(int rank) {
  Dims out = Shape::filled(rank, 0);
  for (int i = 0; i < rank; ++i) out[i] = i;
  return out;
}

int64_t checked_numel(const char* op, const Shape& shape) {
  int64_t product = 1;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0) {
      throw_error<ShapeError>(op, ": negative size; got shape ", shape,
                              "; expected sizes of 0 or more");
    }
    empty = empty || size == 0;
    if (__builtin_mul_overflow(product, std::max<int64_t>(size, 1), &product)) {
      throw_error<ShapeError>(op, ": too many elements; got shape ", shape,
                              "; expected fewer than 2^63");
    }
  }
  return empty ? 0 : product;
}

}  // namespace kiln
