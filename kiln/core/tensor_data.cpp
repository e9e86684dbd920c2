#include "kiln/core/tensor_data.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "kiln/core/complex.h"
#include "kiln/core/convert.h"
#include "kiln/core/portable.h"

namespace kiln {
namespace {

// Bytes of `shape`; the largest size_t, which nothing can hold, where they overflow.
size_t checked_bytes(const Shape& shape, DType dtype) {
  const auto numel = static_cast<uint64_t>(checked_numel("TensorData", shape));
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(numel, size_of(dtype), &bytes)) {
    return std::numeric_limits<size_t>::max();
  }
  return detail::memory_size(bytes);
}

// Reads element `i`. A bool is read as its byte: what a file holds there may be neither 0 nor 1.
template <class T>
auto load(const std::byte* data, int64_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return reinterpret_cast<const uint8_t*>(data)[i] != 0;
  } else {
    return reinterpret_cast<const T*>(data)[i];
  }
}

// Conversion where either dtype is complex: a real number has no imaginary part, and a complex one
// loses it.
TensorData cast_complex(const TensorData& data, DType dtype) {
  TensorData out(data.shape(), dtype);
  const int64_t from_parts = is_complex(data.dtype()) ? 2 : 1;
  const int64_t to_parts = is_complex(dtype) ? 2 : 1;
  const int64_t n = data.numel();
  visit_dtype("cast", real_dtype(data.dtype()), [&]<class From>() {
    visit_dtype("cast", real_dtype(dtype), [&]<class To>() {
      To* to = reinterpret_cast<To*>(out.mutable_data());
      for (int64_t i = 0; i < n; ++i) {
        to[i * to_parts] = convert_element<To>(load<From>(data.data(), i * from_parts));
        if (std::is_same_v<To, bool> && from_parts == 2 &&
            load<From>(data.data(), i * 2 + 1) != 0) {
          to[i] = To(1);  // a bool asks whether the number is not zero
        }
        if (to_parts == 1) continue;
        to[i * 2 + 1] =
            from_parts == 2 ? convert_element<To>(load<From>(data.data(), i * 2 + 1)) : To(0);
      }
    });
  });
  return out;
}

// Values are read as they are stored: quantized ones without their scale.
DType stored_as(DType dtype) { return dtype == DType::q8 ? DType::i8 : dtype; }

}  // namespace

TensorData::TensorData(const Shape& shape, DType dtype)
    : shape_(shape), dtype_(dtype), storage_(Storage::allocate(checked_bytes(shape, dtype))) {}

TensorData::TensorData(const Shape& shape, DType dtype, Handle<Storage> storage, size_t byte_offset)
    : shape_(shape), dtype_(dtype), storage_(std::move(storage)), byte_offset_(byte_offset) {
  const size_t needed = checked_bytes(shape, dtype);
  const size_t held = storage_ ? storage_->bytes() : 0;
  if (!storage_ || byte_offset > held || held - byte_offset < needed) {
    throw_error<ValueError>("TensorData: the storage is too small for shape ", shape, " of ", dtype,
                            "; got ", held, " bytes and offset ", byte_offset, "; expected ",
                            needed, " bytes from the offset on");
  }
  const size_t alignment = std::min<size_t>(size_of(dtype), 8);
  if (needed > 0 && reinterpret_cast<uintptr_t>(data()) % alignment != 0) {
    throw_error<ValueError>("TensorData: values of ", dtype, " are not aligned; got byte offset ",
                            byte_offset, "; expected an address that is a multiple of ", alignment,
                            " (try copying them)");
  }
}

TensorData TensorData::cast(DType dtype) const {
  if (dtype == dtype_) return *this;
  if (is_complex(dtype_) || is_complex(dtype)) return cast_complex(*this, dtype);
  TensorData out(shape_, dtype);
  const int64_t n = numel();
  const std::byte* from = data();
  std::byte* to = out.mutable_data();
  visit_dtype("cast", dtype_, [&]<class From>() {
    visit_dtype("cast", dtype, [&]<class To>() {
      To* values = reinterpret_cast<To*>(to);
      for (int64_t i = 0; i < n; ++i) values[i] = convert_element<To>(load<From>(from, i));
    });
  });
  return out;
}

std::vector<double> TensorData::to_doubles() const {
  std::vector<double> out(static_cast<size_t>(numel()));
  visit_dtype("to_doubles", stored_as(dtype_), [&]<class T>() {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = convert_element<double>(load<T>(data(), static_cast<int64_t>(i)));
    }
  });
  return out;
}

double TensorData::item(int64_t i) const {
  if (i < 0 || i >= numel()) {
    throw_error<IndexError>("TensorData::item: index out of range; got ", i, " for shape ", shape_,
                            "; expected 0 to ", numel() - 1);
  }
  return visit_dtype("item", stored_as(dtype_),
                     [&]<class T>() { return convert_element<double>(load<T>(data(), i)); });
}

void TensorData::fill_from(const void* values, size_t count) {
  if (count != static_cast<size_t>(numel())) {
    throw_error<ShapeError>("TensorData: wrong number of values; got ", count, " for shape ",
                            shape_, "; expected ", numel());
  }
  if (count > 0) std::memcpy(mutable_data(), values, bytes());
}

void TensorData::throw_wrong_type(DType asked) const {
  throw_error<DTypeError>("TensorData::as: wrong element type; got ", asked, "; expected ", dtype_,
                          " (try cast)");
}

}  // namespace kiln
