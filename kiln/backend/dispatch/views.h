// What backends say of views (kiln/backend/layout.h), over erased handles.
#pragma once

#include <atomic>

#include "kiln/backend/dispatch/dispatch.h"
#include "kiln/backend/layout.h"

namespace kiln {

struct ViewTable {
  // Of a float, int or bool tensor. No layout (false) where the backend knows none.
  Layout (*layout)(const ErasedTensor&);
  // Another view of x's storage; null where the backend declares no layouts.
  ErasedTensor (*as_strided)(const ErasedTensor&, const Shape&, const Strides&, int64_t offset);
  // The same with elements of another dtype; null where the backend has no such views.
  ErasedTensor (*reinterpret)(const ErasedTensor&, DType, const Shape&, const Strides&,
                              int64_t offset);
};

namespace detail {

// By device type, as backend_tables.
extern std::atomic<const ViewTable*> view_tables[kDeviceTypeValues];

inline const ViewTable& views_of(const ErasedTensor& x) {
  return *view_tables[x->device().type].load(std::memory_order_relaxed);
}

}  // namespace detail

// Where x lies in memory; false where its backend does not say, and of a quantized tensor.
inline Layout layout_of(const ErasedTensor& x) {
  if (x->dtype() == DType::q8) [[unlikely]]
    return {};
  return detail::views_of(x).layout(x);
}

// The dims of the result of an elementwise op on x (result_layout.h), outermost first; of rank 0
// where it is row-major, or where x's layout is not known.
Dims memory_order(const ErasedTensor& x);

}  // namespace kiln
