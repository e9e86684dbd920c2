// The columns of a product's second matrix, packed and kept (Note [Kept data]).
#pragma once

#include <memory>

#include "kiln/backend/cpu/matmul/gemm.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/kept_data.h"
#include "kiln/core/storage.h"

namespace kiln::cpu {

// B of the product, which lies in `storage`, as pack_whole_b() packs it; null where none is kept,
// or where the product takes no tiles.
template <class T>
std::shared_ptr<const void> kept_columns(const Storage& storage, const Gemm<T>& g) {
  if (!gemm_takes_tiles(g)) return nullptr;
  using kiln::detail::KeptKey;
  const int64_t offset = g.b.data - static_cast<const T*>(storage.data());
  const KeptKey key{
      KeptKey::matrix,
      {offset, g.k, g.n, g.b.row, g.b.column, int64_t{sizeof(T)}, packed_b_columns<T>(1)}};
  return kiln::detail::kept_data(storage, key, [&] {
    auto packed = std::make_shared<Scratch<T>>(packed_b_size<T>(g.k, g.n));
    pack_whole_b(g.b, g.k, g.n, packed->get());
    const T* const data = packed->get();
    return std::shared_ptr<const void>(std::move(packed), data);
  });
}

}  // namespace kiln::cpu
