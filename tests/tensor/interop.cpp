#include "kiln/tensor/interop.h"

#include <array>

#include <doctest/doctest.h>

#include "kiln/kiln.h"

using namespace kiln;

TEST_CASE("from_blob: a tensor over foreign memory, released with its last view") {
  std::array<float, 6> memory{0, 1, 2, 3, 4, 5};
  int released = 0;
  const auto release = [](void* context) { ++*static_cast<int*>(context); };
  {
    Tensor column;
    {
      // The transpose of a [2, 3] array.
      Tensor x = interop::from_blob(memory.data(), {3, 2}, {1, 3}, f32, release, &released);
      CHECK(x.to_vector<float>() == std::vector<float>{0, 3, 1, 4, 2, 5});
      column = x.select(1, 1);
      column.fill_(9);
    }
    CHECK(released == 0);
    CHECK(memory[3] == 9);
    CHECK(interop::data(column) == &memory[3]);
    CHECK(interop::storage_offset(column) == 3);
  }
  CHECK(released == 1);
  CHECK_THROWS_AS(interop::from_blob(memory.data(), {2}, {-1}, f32, release, &released),
                  ValueError);
  CHECK_THROWS_AS(interop::from_blob(memory.data(), {2}, {}, f32, release, &released), ShapeError);
}

TEST_CASE("set_data: a leaf shows other memory and stays the leaf that it is") {
  Tensor x = ones({2}).requires_grad_();
  const Tensor y = x * 3;
  Tensor values = full({2}, 5.0, {f64});
  interop::set_data(x, values);
  CHECK(x.dtype() == f64);
  CHECK(x.requires_grad());
  values.fill_(7);
  CHECK(x.to_vector<double>() == std::vector<double>{7, 7});
  const Gradients grads = y.sum().backward();
  CHECK(grads.get(x)->to_vector<double>() == std::vector<double>{3, 3});
  CHECK_THROWS_AS(interop::set_data(x, arange(2)), DTypeError);
}

TEST_CASE("foreign_object: a place for each tensor") {
  const Tensor x = ones({2});
  const Tensor same = x;
  int object = 0;
  CHECK(interop::foreign_object(x) == nullptr);
  interop::foreign_object(x) = &object;
  CHECK(interop::foreign_object(same) == &object);
  CHECK(interop::foreign_object(x.clone()) == nullptr);
}
