// What Kiln does in a browser where something is missing: docs/web.md promises it.
#include <algorithm>
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "kiln/core/accelerator.h"
#include "kiln/core/allocator.h"
#include "kiln/core/parallel.h"
#include "kiln/io/gzip.h"
#include "kiln/io/image.h"
#include "kiln/kiln.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;

TEST_CASE("wasm: one thread, whatever is asked for") {
  static_assert(sizeof(void*) == 4);
  CHECK(num_threads() == 1);
  set_num_threads(8);
  CHECK(num_threads() == 1);
  const int64_t count = 100'000;
  std::vector<int> seen(static_cast<size_t>(count));
  parallel_for(count, 1000, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  CHECK(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
}

TEST_CASE("wasm: tensors larger than the memory are ValueErrors, and nothing is lost") {
  CHECK_THROWS_AS(zeros({int64_t{1} << 31}), ValueError);  // 8 GiB
  CHECK_THROWS_AS(zeros({(int64_t{1} << 30) + 1, 4}), ValueError);
  CHECK_THROWS_AS(zeros({1, 1}).expand({1 << 16, 1 << 16}).contiguous(), ValueError);
  const size_t before = memory_stats().bytes_in_use;
  for (int i = 0; i < 20; ++i) CHECK(ones({4 << 20}).sum().item() == 4 << 20);  // 16 MiB each
  CHECK(memory_stats().bytes_in_use == before);
}

TEST_CASE("wasm: files lie in memory") {
  const test::TempDir dir;
  nn::Linear from(3, 2), to(3, 2);
  io::save_model(from, dir.path("net.safetensors"));
  io::load_model(to, dir.path("net.safetensors"));
  CHECK(to.weight->equal(*from.weight));
  io::save_model(from, dir.path("net.npz"));
  io::load_model(to, dir.path("net.npz"));
  CHECK(to.bias->equal(*from.bias));
}

TEST_CASE("wasm: what needs zlib or libpng says which option gives it") {
  const test::TempDir dir;
  CHECK_THROWS_WITH_AS(io::compress_gzip("text", 6, 0), doctest::Contains("KILN_ZLIB"),
                       NotImplementedError);
  const std::string gz = dir.path("a.gz");
  test::write_bytes(gz, std::string("\x1f\x8b\x08\0\0\0\0\0\0\3\3\0\0\0\0\0\0\0\0\0", 20));
  CHECK_THROWS_WITH_AS(io::read_file("read", gz, 100), doctest::Contains("KILN_ZLIB"),
                       NotImplementedError);
  CHECK_FALSE(io::reads_image_format("png"));
  CHECK_THROWS_WITH_AS(io::encode_png_gray(TensorData(Shape{2, 2}, DType::u8)),
                       doctest::Contains("KILN_PNG"), NotImplementedError);
  CHECK_THROWS_WITH_AS(io::decode_image("\x89PNG\r\n\x1a\n", "a.png"),
                       doctest::Contains("KILN_PNG"), IoError);
}

TEST_CASE("wasm: there is no GPU") {
  CHECK_FALSE(opencl::is_available());
  CHECK_FALSE(cuda::is_available());
  CHECK_THROWS_AS(zeros({2}, {.device = Device("opencl")}), DeviceError);
}

TEST_CASE("wasm: each dtype computes, vectors of every length") {
  for (const int64_t n : {1, 3, 4, 7, 16, 33, 1000}) {
    for (const DType dtype :
         {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8}) {
      const Tensor x = arange(n).remainder(7).to(dtype);
      int64_t sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += 2 * (i % 7) + 1;
      CHECK((x + x + 1).to(f64).sum().item() == static_cast<double>(sum));
    }
  }
}
