// cat: tensors one after another along a dim.
#include <algorithm>
#include <vector>

#include "kiln/backend/cpu/copy/copy_kernels.h"
#include "kiln/backend/cpu/copy/items.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/elementwise/convert_kernels.h"
#include "kiln/backend/cpu/index/indices.h"

namespace kiln {
namespace cpu {
namespace {

// Bytes that a piece of a row has on average; shorter ones have loops of their own.
constexpr int64_t kLeastPiece = 64;
// Up to so many bytes on average a part's pieces of several rows are copied at once, of rows that
// have so many bytes together.
constexpr int64_t kShortPiece = 1024, kRowsAtOnce = 16 * 1024;

// Contiguous parts: each row of the result is one of each part, end to end.
void cat_rows(std::span<const HostHandle> parts, int dim, const HostTensor& out) {
  const auto item = static_cast<int64_t>(size_of(out.dtype()));
  struct Piece {
    const char* from;
    int64_t begin, end;  // bytes of the row
  };
  std::vector<Piece> pieces;
  int64_t row = 0;
  for (const HostHandle& part : parts) {
    if (part->numel() == 0) continue;
    const int64_t bytes = item * AroundDim(part->shape(), dim).inner * part->shape()[dim];
    pieces.push_back({part->data_as<const char>(), row, row + bytes});
    row += bytes;
  }
  auto* to = out.data_as<char>();
  bool stream = should_stream(out.numel() * item) && reinterpret_cast<uintptr_t>(to) % 64 == 0;
  for (const Piece& piece : pieces) stream = stream && piece.end % 64 == 0;
  const int64_t rows = out.numel() * item / row;
  if (row <= kShortPiece * static_cast<int64_t>(pieces.size()) && rows > 1) {
    const int64_t at_once = std::max<int64_t>(kRowsAtOnce / row, 1);
    parallel_for(rows, std::max<int64_t>(kGrain * 4 / row, 1), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r += at_once) {
        const int64_t count = std::min(at_once, end - r);
        for (const Piece& piece : pieces) {
          const int64_t bytes = piece.end - piece.begin;
          copy_kernels().copy_rows(piece.from + r * bytes, bytes, to + r * row + piece.begin, row,
                                   bytes, count, stream);
        }
      }
    });
    return;
  }
  parallel_for(out.numel() * item, kGrain * 4, [&](int64_t begin, int64_t end) {
    int64_t r = begin / row;
    int64_t at = begin % row;
    size_t p = 0;
    while (pieces[p].end <= at) ++p;
    for (int64_t i = begin; i < end;) {
      const Piece& piece = pieces[p];
      const int64_t bytes = std::min(piece.end - at, end - i);
      const char* from = piece.from + r * (piece.end - piece.begin) + (at - piece.begin);
      if (stream && bytes >= 4096) {
        convert_kernels().stream_copy(from, to + i, bytes);
      } else {
        copy_bytes(to + i, from, bytes);
      }
      i += bytes;
      at += bytes;
      if (++p == pieces.size()) {
        p = 0;
        at = 0;
        ++r;
      }
    }
  });
}

HostHandle cat(std::span<const HostHandle> parts, int dim) {
  Shape shape = parts[0]->shape();
  shape[dim] = 0;
  for (const HostHandle& part : parts) shape[dim] += part->shape()[dim];
  HostHandle out = host::empty(shape, parts[0]->dtype(), parts[0]->device());
  bool rows = out->numel() * static_cast<int64_t>(size_of(out->dtype())) >=
              AroundDim(shape, dim).outer * static_cast<int64_t>(parts.size()) * kLeastPiece;
  for (const HostHandle& part : parts) rows = rows && part->is_contiguous();
  if (rows && out->numel() > 0) {
    cat_rows(parts, dim, *out);
    return out;
  }
  int64_t at = 0;
  for (const HostHandle& part : parts) {
    const int64_t size = part->shape()[dim];
    if (part->numel() != 0) {
      copy_elements(*part, *host::slice(out, dim, Range{at, at + size, 1}), /*fresh=*/true);
    }
    at += size;
  }
  return out;
}

}  // namespace
}  // namespace cpu

HostHandle CpuOps::float_cat(std::span<const HostHandle> parts, int dim) {
  return cpu::cat(parts, dim);
}
HostHandle CpuOps::int_cat(std::span<const HostHandle> parts, int dim) {
  return cpu::cat(parts, dim);
}
HostHandle CpuOps::bool_cat(std::span<const HostHandle> parts, int dim) {
  return cpu::cat(parts, dim);
}

}  // namespace kiln
