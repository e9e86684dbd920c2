// RandAugment's changes on pictures small enough to work out by hand.
#include "cli/train/rand_augment.h"

#include <doctest/doctest.h>

#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

using namespace kiln;
using namespace kiln::cli;

namespace {

Tensor changed(RandomChange which, double strength, const Tensor& image, bool negative = false) {
  Tensor x = image.to(u8).clone();
  change(which, strength, negative, x, nullptr);
  CHECK(x.dtype() == u8);
  CHECK(x.shape() == image.shape());
  return x.to(i64);
}

}  // namespace

TEST_CASE("rand_augment: what becomes of bytes") {
  const Tensor gray = tensor({{{0, 10, 100}, {200, 250, 255}}});
  CHECK(changed(RandomChange::identity, 1, gray).equal(gray));
  CHECK(changed(RandomChange::solarize, 0.2, gray).equal(tensor({{{0, 10, 100}, {200, 5, 0}}})));
  CHECK(changed(RandomChange::posterize, 1, gray).equal(tensor({{{0, 0, 96}, {192, 240, 240}}})));
  // A tenth, without its fraction.
  const Tensor dark = changed(RandomChange::brightness, 1, gray, true);
  CHECK((dark - tensor({{{0, 1, 10}, {20, 25, 25}}})).abs().max().item<int64_t>() <= 1);
  CHECK(
      changed(RandomChange::brightness, 1, gray).equal(tensor({{{0, 19, 190}, {255, 255, 255}}})));
  // From 50 to 150: 255 / 100 of what is above 50.
  const Tensor dull = tensor({{{50, 75, 100}, {125, 150, 60}}});
  CHECK(changed(RandomChange::auto_contrast, 1, dull)
            .equal(tensor({{{0, 63, 127}, {191, 255, 25}}})));
  const Tensor flat = full({1, 2, 3}, 7, {.dtype = i64});
  for (const RandomChange which : {RandomChange::auto_contrast, RandomChange::equalize,
                                   RandomChange::contrast, RandomChange::sharpness}) {
    CHECK(changed(which, 1, flat).equal(flat));
  }
  // Of a colour picture without colours nothing is left to take.
  const Tensor bright = full({3, 2, 2}, 90, {.dtype = i64});
  CHECK((changed(RandomChange::color, 1, bright, true) - bright).abs().max().item<int64_t>() <= 1);
}

TEST_CASE("rand_augment: equalize spreads values over all of the range") {
  const Tensor ramp = arange(Scalar(1024), {i64}).reshape({1, 32, 32}) / 8;  // 0 to 127, 8 of each
  const Tensor floored = ramp.floor().to(i64);
  const Tensor out = changed(RandomChange::equalize, 1, floored);
  CHECK(out.min().item<int64_t>() == 0);
  CHECK(out.max().item<int64_t>() >= 250);
  // It keeps the order.
  const Tensor row = out.flatten();
  CHECK((row.narrow(0, 1, 1023) - row.narrow(0, 0, 1023)).min().item<int64_t>() >= 0);
}

TEST_CASE("rand_augment: pixels and their classes move together") {
  Tensor image = (rand({3, 24, 33}) * 255.0).to(u8),
         classes = arange(Scalar(24 * 33), {i64}).reshape({24, 33});
  for (const RandomChange which :
       {RandomChange::translate_x, RandomChange::translate_y, RandomChange::rotate,
        RandomChange::shear_x, RandomChange::shear_y}) {
    Tensor moved = image.clone(), where = classes.clone();
    change(which, 0.5, true, moved, &where);
    CHECK(where.dtype() == i64);
    CHECK_FALSE(where.equal(classes));
    // Each class is the place that its pixel came from; 0 is also what came from outside.
    const Tensor from = image.flatten(1).index_select(1, where.flatten()).reshape({3, 24, 33});
    const Tensor inside = where.gt(0).unsqueeze(0);
    CHECK(((from.to(i64) - moved.to(i64)) * inside.to(i64)).abs().max().item<int64_t>() == 0);
  }
  Tensor moved = image.clone();
  change(RandomChange::translate_x, 0.5, false, moved,
         nullptr);  // 150 / 331 of 33 columns, half of it: 7
  CHECK(moved.narrow(2, 7, 26).equal(image.narrow(2, 0, 26)));
  CHECK(moved.narrow(2, 0, 7).to(i64).max().item<int64_t>() == 0);
}
