#include "kiln/nn/module_list.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/nn/models.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::nn::ModuleList;

TEST_CASE("ModuleList") {
  ModuleList list;
  list.push_back(Linear{2, 3}).push_back(nn::ReLU{}).push_back(std::make_shared<Linear>(3, 1));
  CHECK(list.size() == 3);
  CHECK(list.at<Linear>(-1).in_features() == 3);
  CHECK(list[1].type_name() == "ReLU");
  CHECK_THROWS_AS(list.at<nn::ReLU>(0), TypeError);
  CHECK_THROWS_AS(list[3], IndexError);
  CHECK_THROWS_AS(list.push_back(std::shared_ptr<nn::Module>()), TypeError);
  CHECK(list.state_dict().keys() ==
        std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"});
  CHECK(list.at<Linear>(0)(ones({2})).shape() == Shape{3});

  list.materialize();
  const ModuleList copy = list;
  CHECK(copy.at<Linear>(0).weight->equal(*list.at<Linear>(0).weight));
  NoGradGuard no_grad;
  list.at<Linear>(0).weight->fill_(0.0);
  CHECK(!copy.at<Linear>(0).weight->equal(*list.at<Linear>(0).weight));
}
