#include "kiln/io/gguf_blocks.h"

#include <cstring>

#include "kiln/core/half.h"

namespace kiln::io::detail {
namespace {

float half_at(const std::byte* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return float16::to_float(bits);
}

// The scale and the minimum of the j-th 32 values of a block of Q4_K: 6 bits each, packed in 12
// bytes: the low bits of the last four pairs lie in the last four bytes, their high bits above
// those of the first four.
void scale_and_minimum(const uint8_t* packed, int j, uint8_t& scale, uint8_t& minimum) {
  if (j < 4) {
    scale = packed[j] & 63;
    minimum = packed[j + 4] & 63;
  } else {
    scale = uint8_t((packed[j + 4] & 15) | ((packed[j - 4] >> 6) << 4));
    minimum = uint8_t((packed[j + 4] >> 4) | ((packed[j] >> 6) << 4));
  }
}

// d and dmin (f16), 12 bytes of scales and minima, 128 bytes of values: 32 low halves, then the 32
// high halves of the same bytes, four times.
void floats_of_q4_k(const std::byte* block, float* values) {
  const float d = half_at(block), dmin = half_at(block + 2);
  const auto* packed = reinterpret_cast<const uint8_t*>(block + 4);
  const uint8_t* bytes = packed + 12;
  for (int j = 0; j < 8; ++j) {
    uint8_t scale, minimum;
    scale_and_minimum(packed, j, scale, minimum);
    const float step = d * float(scale), least = dmin * float(minimum);
    const uint8_t* half = bytes + j / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      const int q = j % 2 == 0 ? half[i] & 15 : half[i] >> 4;
      values[j * 32 + i] = step * float(q) - least;
    }
  }
}

// 128 bytes of low halves, 64 bytes with two high bits of four values each, 16 scales of 8 bits, d
// (f16). Twice 128 values: of 32 bytes of high bits the i-th belongs to the values i, i + 32, i +
// 64 and i + 96, whose low halves are those of bytes i and i + 32, then the high halves of the
// same.
void floats_of_q6_k(const std::byte* block, float* values) {
  const auto* low = reinterpret_cast<const uint8_t*>(block);
  const uint8_t* high = low + 128;
  const auto* scales = reinterpret_cast<const int8_t*>(high + 64);
  const float d = half_at(block + 208);
  for (int part = 0; part < 2; ++part, low += 64, high += 32, scales += 8, values += 128) {
    for (int i = 0; i < 128; ++i) {
      const int column = i % 32, row = i / 32;
      const uint8_t byte = low[column + row % 2 * 32];
      const int bits = (row < 2 ? byte & 15 : byte >> 4) | ((high[column] >> (2 * row)) & 3) << 4;
      values[i] = d * float(scales[i / 16]) * float(bits - 32);
    }
  }
}

}  // namespace

GgufType gguf_type(uint32_t number) {
  switch (number) {
    case 0:
      return {"F32", 4, 1, DType::f32, true};
    case 1:
      return {"F16", 2, 1, DType::f16, true};
    case kGgufQ4_0:
      return {"Q4_0", 18, 32, DType::f32, false};
    case kGgufQ8_0:
      return {"Q8_0", 34, 32, DType::f32, false};
    case kGgufQ4_K:
      return {"Q4_K", 144, 256, DType::f32, false};
    case kGgufQ6_K:
      return {"Q6_K", 210, 256, DType::f32, false};
    case 24:
      return {"I8", 1, 1, DType::i8, true};
    case 25:
      return {"I16", 2, 1, DType::i16, true};
    case 26:
      return {"I32", 4, 1, DType::i32, true};
    case 27:
      return {"I64", 8, 1, DType::i64, true};
    case 28:
      return {"F64", 8, 1, DType::f64, true};
    case 30:
      return {"BF16", 2, 1, DType::bf16, true};
    default:
      return {nullptr, 0, 1, DType::f32, false};
  }
}

bool gguf_integers(uint32_t type, const std::byte* blocks, size_t count, int8_t* values,
                   float* scales) {
  const uint64_t bytes = gguf_type(type).bytes;
  bool fits = true;
  for (size_t block = 0; block < count; ++block, blocks += bytes, values += 32) {
    scales[block] = half_at(blocks);
    const auto* packed = reinterpret_cast<const uint8_t*>(blocks + 2);
    for (int i = 0; i < 32; ++i) {
      if (type == kGgufQ8_0) {
        values[i] = static_cast<int8_t>(packed[i]);
        fits = fits && values[i] != -128;
      } else {  // the first 16 in the low halves, the others in the high ones
        values[i] = int8_t((i < 16 ? packed[i] & 15 : packed[i - 16] >> 4) - 8);
      }
    }
  }
  return fits;
}

void gguf_floats(uint32_t type, const std::byte* blocks, size_t count, float* values) {
  const GgufType kind = gguf_type(type);
  for (size_t block = 0; block < count; ++block, blocks += kind.bytes, values += kind.values) {
    if (type == kGgufQ4_K) {
      floats_of_q4_k(blocks, values);
      continue;
    }
    if (type == kGgufQ6_K) {
      floats_of_q6_k(blocks, values);
      continue;
    }
    int8_t integers[32];
    float scale;
    gguf_integers(type, blocks, 1, integers, &scale);
    for (int i = 0; i < 32; ++i) values[i] = scale * float(integers[i]);
  }
}

}  // namespace kiln::io::detail
