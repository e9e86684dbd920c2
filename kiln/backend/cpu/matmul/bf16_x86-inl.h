// bf16 and floats by AVX-512 with BF16. Included by the files that hold such kernels, inside of a
// namespace and of a region with these attributes.

// The first of a vector's lanes, of which `left` are left.
inline __mmask16 lanes_of(int64_t left) {
  return static_cast<__mmask16>(left >= 16 ? 0xffff : (1U << left) - 1);
}

inline __m512 widened(__m256i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

// Of floats that are bf16.
inline __m256i upper_halves(__m512 x) {
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(x), 16));
}

// To nearest even, a NaN stays one; numbers below 2^-126 become zero.
inline __m256i narrowed(__m512 x) { return (__m256i)_mm512_cvtneps_pbh(x); }

// The same with subnormal numbers, as bfloat16(float) has it: for what ops other than products
// give.
inline __m256i narrowed_exactly(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i kept = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x40 << 16));
  return upper_halves(_mm512_castsi512_ps(kept));
}
