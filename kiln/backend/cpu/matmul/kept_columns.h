// The columns of a product's second matrix, packed and kept (Note [Kept data]).
#pragma once

#include <memory>

#include "kiln/backend/cpu/matmul/gemm.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/kept_data.h"
#include "kiln/core/storage.h"

namespace kiln::cpu {

// B [k, n].
template <class T>
struct KeptMatrix {
  MatrixView<T> b;
  int64_t k, n;
};

// What lies in `storage`, as pack_whole_b() packs it; null where none is kept.
template <class T>
std::shared_ptr<const void> kept_columns(const Storage& storage, const KeptMatrix<T>& of) {
  using kiln::detail::KeptKey;
  const auto& [b, k, n] = of;
  const int64_t offset = b.data - static_cast<const T*>(storage.data());
  const KeptKey key{KeptKey::matrix,
                    {offset, k, n, b.row, b.column, int64_t{sizeof(T)}, packed_b_columns<T>(1)}};
  // (One reference: a std::function of more would ask for memory.)
  return kiln::detail::kept_data(storage, key, [&of] {
    auto packed = std::make_shared<Scratch<T>>(packed_b_size<T>(of.k, of.n));
    pack_whole_b(of.b, of.k, of.n, packed->get());
    const T* const data = packed->get();
    return std::shared_ptr<const void>(std::move(packed), data);
  });
}

// B of the product, if it takes tiles.
template <class T>
std::shared_ptr<const void> kept_columns(const Storage& storage, const Gemm<T>& g) {
  return gemm_takes_tiles(g) ? kept_columns(storage, KeptMatrix<T>{g.b, g.k, g.n}) : nullptr;
}

}  // namespace kiln::cpu
