// What a model holds. Internal to kiln/pt2.
#pragma once

#include "kiln/pt2/model.h"
#include "kiln/pt2/program.h"

namespace kiln::pt2 {

struct Model::State {
  Program program;
};

}  // namespace kiln::pt2
