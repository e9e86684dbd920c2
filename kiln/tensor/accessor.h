// Accessor: the elements of a tensor in host memory, read and written one by one.
#pragma once

#include <array>
#include <cstdint>

#include "kiln/core/error.h"
#include "kiln/tensor/tensor.h"

namespace kiln {

// auto a = x.accessor<float, 2>(); a[i][j] is an element of x, to read and to write. It is good as
// long as the tensor's memory is, and indices are not checked: 0 <= i < a.size(0). Writes are not
// recorded.
template <class T, int N>
class Accessor {
 public:
  Accessor(T* data, const int64_t* sizes, const int64_t* strides) : data_(data) {
    for (int d = 0; d < N; ++d) {
      sizes_[d] = sizes[d];
      strides_[d] = strides[d];
    }
  }
  int64_t size(int dim) const { return sizes_[static_cast<size_t>(dim)]; }
  int64_t stride(int dim) const { return strides_[static_cast<size_t>(dim)]; }
  T* data() const { return data_; }
  decltype(auto) operator[](int64_t i) const {
    T* const at = data_ + i * strides_[0];
    if constexpr (N == 1) {
      return static_cast<T&>(*at);
    } else {
      return Accessor<T, N - 1>(at, sizes_.data() + 1, strides_.data() + 1);
    }
  }

 private:
  T* data_;
  std::array<int64_t, N> sizes_;
  std::array<int64_t, N> strides_;
};

// Throws DTypeError and DeviceError as data_ptr() does, and ShapeError for another number of dims.
template <class T, int N>
Accessor<T, N> Tensor::accessor() const {
  static_assert(N > 0, "accessor: a tensor of 0 dims has item()");
  if (dim() != N) {
    throw_error<ShapeError>("accessor: wrong number of dims; got ", shape(), "; expected ", N,
                            " dims");
  }
  const Strides steps = stride();
  return Accessor<T, N>(data_ptr<T>(), shape().data(), steps.data());
}

}  // namespace kiln
