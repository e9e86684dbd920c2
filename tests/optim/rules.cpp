// Each optimizer's steps on two small parameters. The values are PyTorch 2.13's or, where it has no
// such optimizer, those of the papers' formulas written out in NumPy, as Muon's are, whose PyTorch
// form rounds to bfloat16.
#include <cmath>

#include <doctest/doctest.h>

#include "kiln/optim/optim.h"
#include "tests/optim/trajectory.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// The steps give these values, also when a state saved after the second one is continued.
template <class O>
void check_run(const typename O::Options& options, const std::vector<std::vector<double>>& lines) {
  TwoParams params;
  O optimizer(params.list(), options);
  CHECK(follows(params, optimizer, lines));

  TwoParams again;
  O first(again.list(), options);
  CHECK(follows(again, first, {lines[0], lines[1]}));
  O second(again.list());
  second.load_state_dict(first.state_dict());
  for (int64_t s = 2; s < 4; ++s) {
    again.set_grads(s);
    second.step();
    CHECK(near(again.values(), lines[static_cast<size_t>(s)], 1e-7, 2e-9));
  }
}

}  // namespace

TEST_CASE("Adagrad") {
  check_run<optim::Adagrad>(
      {.lr = 0.1, .lr_decay = 0.1, .weight_decay = 0.1, .initial_accumulator_value = 0.5},
      {{0.972783447, -1.9507634, 0.455639302, 0.323872367, -0.753533326},
       {0.938690752, -1.89704338, 0.398070662, 0.353935214, -0.750277903},
       {0.901609949, -1.84562011, 0.341586667, 0.351283329, -0.741496153},
       {0.864345454, -1.79871503, 0.290442886, 0.323257373, -0.728282046}});
}

TEST_CASE("Adadelta") {
  check_run<optim::Adadelta>({.lr = 0.5, .rho = 0.8, .weight_decay = 0.1},
                             {{0.998882036, -1.99888198, 0.498881989, 0.251118029, -0.751113589},
                              {0.997524203, -1.99752403, 0.497457522, 0.251870187, -0.749937695},
                              {0.995929873, -1.9959295, 0.495746428, 0.251810265, -0.748171281},
                              {0.994106559, -1.9941059, 0.493761502, 0.250925493, -0.746004557}});
}

TEST_CASE("RMSprop") {
  check_run<optim::RMSprop>(
      {.lr = 0.1, .alpha = 0.9, .weight_decay = 0.1, .momentum = 0.5, .centered = true},
      {{0.666666722, -1.66666669, 0.166666698, 0.583333319, -1.08333289},
       {0.214365968, -1.20901506, -0.306906594, 0.895778352, -0.952197278},
       {-0.276553937, -0.707035658, -0.832579653, 1.01301996, -0.599670676},
       {-0.776753351, -0.191984339, -1.37284562, 0.892625751, -0.167158123}});
}

TEST_CASE("Adamax") {
  check_run<optim::Adamax>({.lr = 0.1, .betas = {0.8, 0.999}, .weight_decay = 0.1},
                           {{0.900000005, -1.9, 0.400000003, 0.349999999, -0.84999996},
                            {0.813793111, -1.81431262, 0.320138893, 0.420679997, -0.826190447},
                            {0.734123354, -1.73514771, 0.246791033, 0.460205438, -0.779254185},
                            {0.6578081, -1.6592535, 0.176005105, 0.466813452, -0.725334346}});
}

TEST_CASE("NAdam") {
  check_run<optim::NAdam>({.lr = 0.1, .weight_decay = 0.1},
                          {{0.894354826, -1.89435482, 0.394354824, 0.355645178, -0.855645137},
                           {0.804786624, -1.80433296, 0.299652209, 0.405838374, -0.773767323},
                           {0.715267641, -1.71437521, 0.204896818, 0.409561575, -0.674280828},
                           {0.622493461, -1.62119057, 0.107272897, 0.360749309, -0.570546158}});
}

TEST_CASE("RAdam") {
  check_run<optim::RAdam>(
      {.lr = 0.1, .betas = {0.9, 0.7}, .weight_decay = 0.1, .decoupled_weight_decay = true},
      {{0.98, -1.96, 0.465, 0.3275, -0.7525},
       {0.954936842, -1.90987368, 0.414560526, 0.383172368, -0.752343421},
       {0.924686367, -1.84937273, 0.3483116, 0.416536217, -0.749469433},
       {0.889126621, -1.77825324, 0.265889839, 0.427119328, -0.743818298}});
}

TEST_CASE("Rprop") {
  check_run<optim::Rprop>({.lr = 0.1}, {{0.9, -1.9, 0.4, 0.35, -0.85},
                                        {0.78, -1.78, 0.28, 0.47, -0.97},
                                        {0.636, -1.636, 0.136, 0.47, -0.97},
                                        {0.4632, -1.4632, -0.0368, 0.35, -0.85}});
}

TEST_CASE("ASGD") {
  check_run<optim::ASGD>({.lr = 0.1, .lambd = 0.1, .t0 = 1.0, .weight_decay = 0.1},
                         {{0.97, -1.94, 0.459999999, 0.325000001, -0.745},
                          {0.930892938, -1.86178588, 0.391314501, 0.358250929, -0.735173606},
                          {0.882991815, -1.76598363, 0.294930388, 0.351191539, -0.720686896},
                          {0.826596181, -1.65319236, 0.17179213, 0.305198714, -0.701698808}});
}

TEST_CASE("Adafactor") {
  check_run<optim::Adafactor>(
      {.lr = 0.1, .weight_decay = 0.1},
      {{0.857712434, -1.84771243, 0.362712434, 0.303401699, -0.798401699},
       {0.729674408, -1.70977441, 0.239624408, 0.34039164, -0.83044164},
       {0.614162244, -1.58446124, 0.129012744, 0.336987724, -0.822137224},
       {0.509627583, -1.47022359, 0.0293295782, 0.276785462, -0.757083467}});
}

TEST_CASE("Lion") {
  check_run<optim::Lion>({.lr = 0.1, .weight_decay = 0.1},
                         {{0.89, -1.88, 0.395, 0.3475, -0.8425},
                          {0.7811, -1.7612, 0.29105, 0.444025, -0.934075},
                          {0.673289, -1.643588, 0.1881395, 0.53958475, -1.02473425},
                          {0.56655611, -1.52715212, 0.086258105, 0.434188903, -0.914486907}});
}

TEST_CASE("Adan") {
  check_run<optim::Adan>({.lr = 0.1, .weight_decay = 0.1},
                         {{0.891089119, -1.88118812, 0.396039607, 0.346534652, -0.841584149},
                          {0.792428883, -1.77272493, 0.302280849, 0.414340968, -0.904488976},
                          {0.693692661, -1.6642828, 0.208397576, 0.437419105, -0.922714158},
                          {0.595529157, -1.55650949, 0.115038972, 0.416609856, -0.89710001}});
}

TEST_CASE("Adan: no_prox") {
  check_run<optim::Adan>({.lr = 0.1, .weight_decay = 0.1, .no_prox = true},
                         {{0.89000001, -1.88, 0.395000003, 0.347499999, -0.84249999},
                          {0.790364063, -1.77046406, 0.300314053, 0.415974724, -0.906024707},
                          {0.690661127, -1.66096012, 0.205511616, 0.439267305, -0.924416784},
                          {0.591546304, -1.5521423, 0.111248286, 0.418231482, -0.898529468}});
}

TEST_CASE("LAMB") {
  check_run<optim::LAMB>({.lr = 0.1, .weight_decay = 0.1},
                         {{0.86989008, -1.85806121, 0.375803432, 0.3073532, -0.804411492},
                          {0.751522377, -1.72857632, 0.262993707, 0.369945821, -0.863552021},
                          {0.643531777, -1.61037276, 0.160109177, 0.438815997, -0.927448178},
                          {0.544704562, -1.50222122, 0.0659438342, 0.518541587, -0.992031662}});
}

TEST_CASE("AdamW: cautious weight decay") {
  check_run<optim::AdamW>({.lr = 0.1, .weight_decay = 0.1, .cautious_weight_decay = true},
                          {{0.89000001, -1.88, 0.395000003, 0.349999999, -0.84999999},
                           {0.784581813, -1.76468181, 0.294531803, 0.443217961, -0.943217942},
                           {0.680935877, -1.65123487, 0.195786364, 0.515275716, -1.01527569},
                           {0.578085495, -1.53868149, 0.0977874744, 0.545393464, -1.04539343}});
}

TEST_CASE("Muon: the momentum made orthogonal") {
  Tensor p = tensor({{1.0, -2.0, 0.5}, {0.25, -0.75, 2.0}}, {.dtype = f64, .requires_grad = true});
  optim::Muon optimizer({p}, {.lr = 0.1});
  const std::vector<std::vector<double>> lines = {
      {0.931470587, -1.91361278, 0.44102362, 0.300758991, -0.761825276, 1.93051448},
      {0.863626468, -1.82808944, 0.382637003, 0.351010391, -0.773532299, 1.86172381},
      {0.796460791, -1.74342132, 0.324834252, 0.400759278, -0.785122251, 1.79362105}};
  for (size_t s = 0; s < lines.size(); ++s) {
    p.set_grad(tensor({{0.1, -0.2, 0.3}, {-0.4, 0.05, 0.6}}, {.dtype = f64}) *
               static_cast<double>(s + 1));
    optimizer.step();
    CHECK(near(p.detach().flatten(), lines[s], 1e-8));
  }
}

TEST_CASE("Muon: what its step does to the singular values") {
  // An update of rank 2 with singular values 100 and 0.01 moves by about lr along both directions.
  Tensor p = zeros({3, 2}, {.dtype = f32, .requires_grad = true});
  optim::Muon optimizer({p}, {.lr = 1.0,
                              .weight_decay = 0.0,
                              .momentum = 0.0,
                              .ns_steps = 20,
                              .adjust_lr_fn = optim::MuonRate::match_rms_adamw});
  p.set_grad(tensor({{3.0, 0.0}, {0.0, 0.02}, {0.0, 0.0}}, {.dtype = f32}));
  optimizer.step();
  const double rate = 0.2 * std::sqrt(3.0);
  const Tensor moved = p.detach() / -rate;
  CHECK(std::abs(moved[0][0].item<double>() - 1.0) < 0.35);
  CHECK(std::abs(moved[1][1].item<double>() - 1.0) < 0.35);
  CHECK(moved[2].abs().max().item<double>() < 1e-3);
}

TEST_CASE("Muon: parameters that are no matrices") {
  Tensor p = zeros({3}, {.requires_grad = true});
  optim::Muon optimizer({p});
  p.set_grad(ones({3}));
  CHECK(message_of<ShapeError>([&] { optimizer.step(); }) ==
        "Muon: parameters must have two dims; got shape [3], try AdamW for the others");
}

TEST_CASE("SparseAdam: rows without a gradient stay as they are") {
  Tensor table = ones({4, 2}, {.dtype = f64, .requires_grad = true});
  Tensor dense = ones({2, 2}, {.dtype = f64, .requires_grad = true});
  optim::SparseAdam sparse({table}, {.lr = 0.1});
  optim::Adam adam({dense}, {.lr = 0.1});
  for (int64_t s = 0; s < 3; ++s) {
    Tensor grad = zeros({4, 2}, {.dtype = f64});
    const Tensor some = tensor({{0.5, -1.0}, {2.0, 0.25}}, {.dtype = f64}) * (1.0 + double(s));
    grad.slice(0, 1, 3).copy_(some);
    table.set_grad(grad);
    dense.set_grad(some);
    sparse.step();
    adam.step();
  }
  const Tensor values = table.detach();
  CHECK(near(values.slice(0, 1, 3).flatten(), dense.detach().flatten().to_vector<double>(), 1e-6));
  CHECK(values[0].eq(1.0).all().item<bool>());
  CHECK(values[3].eq(1.0).all().item<bool>());
}

TEST_CASE("optimizers: options that make no sense") {
  TwoParams params;
  const auto list = params.list();
  CHECK(message_of<ValueError>([&] { optim::Adadelta(list, {.rho = 1.5}); }) ==
        "Adadelta: rho must be in [0, 1]; got 1.5");
  CHECK(message_of<ValueError>([&] {
          optim::Rprop(list, {.etas = {0.5, 0.9}});
        }) == "Rprop: expected 0 < etas[0] < 1 < etas[1]; got 0.5 and 0.9");
  CHECK(message_of<ValueError>([&] {
          optim::Lion(list, {.betas = {1.0, 0.99}});
        }) == "Lion: each of betas must be in [0, 1); got {1, 0.99}");
  CHECK(message_of<ValueError>([&] {
          optim::Adan(list, {.betas = {0.98, 0.92, -1.0}});
        }) == "Adan: each of betas must be in [0, 1); got {0.98, 0.92, -1}");
  CHECK(message_of<ValueError>([&] { optim::Muon(list, {.ns_steps = 100}); }) ==
        "Muon: ns_steps must be in [0, 100); got 100");
  CHECK(message_of<ValueError>([&] { optim::Adafactor(list, {.d = 0.5}); }) ==
        "Adafactor: d must be >= 1; got 0.5");
  CHECK_THROWS_AS(optim::RMSprop(list, {.momentum = -1.0}), ValueError);
  CHECK_THROWS_AS(optim::ASGD(list, {.lambd = -1.0}), ValueError);
  CHECK_THROWS_AS(optim::NAdam(list, {.weight_decay = -1.0}), ValueError);
  CHECK_THROWS_AS(optim::SparseAdam(list, {.weight_decay = 1.0}), ValueError);
}

TEST_CASE("Adafactor: its state is that of rows and columns") {
  Tensor p = ones({3, 4}, {.requires_grad = true}), b = ones({4}, {.requires_grad = true});
  optim::Adafactor optimizer({p, b});
  p.set_grad(ones({3, 4}));
  b.set_grad(ones({4}));
  optimizer.step();
  const auto state = optimizer.state_dict();
  CHECK(state.tensors.at("state.0.row_var").shape() == Shape{3, 1});
  CHECK(state.tensors.at("state.0.col_var").shape() == Shape{1, 4});
  CHECK(state.tensors.at("state.1.variance").shape() == Shape{4});
  CHECK(state.tensors.size() == 3);
}
