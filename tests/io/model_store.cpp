#include "kiln/io/model_store.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::test::message_of;
using kiln::test::near;
using kiln::test::Net;
using kiln::test::TempDir;

TEST_CASE("save_into and load_from: a part of a model, renamed, through a file") {
  const TempDir dir;
  Net source;
  io::save_into(source, dir.path("part.safetensors"),
                {.filter = {"conv.*", "block.*"}, .remap = {{"^", "old."}}}, {{"note", "x"}});
  const io::SafetensorsReader reader(dir.path("part.safetensors"));
  CHECK(reader.keys().size() == 4);
  CHECK(reader.contains("old.block.fc.weight"));
  CHECK(reader.metadata().at("note") == "x");

  Net target;
  const Tensor scale = target.scale->detach().clone();
  const auto result = io::load_from(target, dir.path("part.safetensors"),
                                    {.filter = {"conv.*", "block.*"}, .remap = {{"^old\\.", ""}}});
  CHECK(result.is_complete());
  CHECK(result.applied.size() == 4);
  CHECK(result.skipped.size() == 10);
  CHECK(target.conv.weight->equal(*source.conv.weight));
  CHECK(target.scale->equal(scale));
  CHECK(message_of<ValueError>([&] {
          io::load_from(target, dir.path("part.safetensors"));
        }).find("missing: 14") != std::string::npos);
  CHECK_THROWS_AS(io::load_from(target, dir.path("none.safetensors")), IoError);
}

TEST_CASE("load_from: Burn's layout from a file") {
  const TempDir dir;
  io::save_safetensors(dir.path("burn.safetensors"),
                       {{"weight", TensorData(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2})},
                        {"bias", TensorData(std::vector<float>{0, 0}, {2})}});
  nn::Linear fc(3, 2);
  io::load_from(fc, dir.path("burn.safetensors"), {.adapter = std::make_shared<nn::BurnAdapter>()});
  CHECK(near(*fc.weight, {1, 3, 5, 2, 4, 6}));
}

TEST_CASE("load_from: a PyTorch checkpoint, remapped, the part under its key") {
  const TempDir dir;
  nn::Linear source(3, 2);
  io::save_into(source, dir.path("m.pt"), {.remap = {{"^", "module."}}});
  nn::Linear target(3, 2);
  const auto result = io::load_from(target, dir.path("m.pt"), {.remap = {{"^module\\.", ""}}});
  CHECK(result.applied.size() == 2);
  CHECK(target.weight->equal(*source.weight));
}
