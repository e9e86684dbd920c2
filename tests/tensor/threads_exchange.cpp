// Weights that one thread refreshes while others compute with them.
#include <atomic>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "kiln/tensor/exchange.h"
#include "kiln/tensor/interop.h"

using namespace kiln;

TEST_CASE("threads compute with weights that another thread exchanges") {
  constexpr int64_t kSize = 600;  // a matrix has a block of its own, which goes back to the system
  Tensor w = zeros({kSize, kSize});
  const Tensor x = ones({2, kSize});
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, products{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&] {
      while (!stop) {
        double value = 0;
        bool alike = false;
        {
          const interop::ReadSection section;
          const Tensor y = x.to(w.dtype()).matmul(w);
          value = y.select(0, 0).select(0, 0).item<double>();
          alike = y.dtype() == w.dtype();
        }
        if ((value != 0 && value != kSize) || !alike) ++wrong;
        ++products;
      }
    });
  }
  for (int i = 0; i < 60 || products < 20; ++i) {
    const DType dtype = i % 3 == 0 ? f64 : f32;
    const Tensor fresh = i % 2 == 0 ? ones({kSize, kSize}, {.dtype = dtype})
                                    : zeros({kSize, kSize}, {.dtype = dtype});
    interop::set_data(w, fresh);
    empty_cache();
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == 0);
  CHECK(interop::ReadSection::running() == 0);
}
