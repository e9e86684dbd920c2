// The reference backend's ops of networks against worked-out values.
//
// The values were computed with PyTorch 2.13 in double precision, from the inputs given here.
#include "tests/backend/reference_check.h"

using namespace kiln;
using namespace reference_test;

TEST_CASE("conv2d and its gradients") {
  const HostHandle x =
      floats({0.07,  0.05,  1.84,  1.37,  1.12,  1.86,  0.6,   0.74,  -0.81, -0.8,  0.77,  0.52,
              1.96,  0.45,  0.58,  -1.05, 0.13,  -0.29, 0.46,  1.69,  1.46,  1.93,  -1.44, 0.73,
              -0.1,  -2.43, -0.15, -2.69, 1.74,  -0.52, -0.28, 0.45,  -1.27, 1.28,  -0.56, -0.34,
              0.11,  0.16,  0.58,  -0.57, 0.67,  -0.94, 0.73,  0.04,  0.64,  0.32,  -1.53, 0.73,
              1.23,  0.98,  0.13,  -0.08, 0.21,  -1.72, 0.54,  -2.22, -0.37, -1.54, -0.16, -0.97,
              -0.65, -1.38, -1.42, -0.43, -0.32, 0.25,  -0.25, 1.09,  -0.54, -0.81, -0.82, -0.06,
              1.38,  1.2,   0.73,  -0.21, 1.1,   -0.34, 0.42,  1.2},
             {1, 4, 4, 5});
  const HostHandle w =
      floats({1.2,   0.16, -1.22, -1.03, -0.01, -1.4,  -0.78, -1.16, 2.11,  1.58,  1.13,  3.16,
              0.13,  1.38, 0.56,  1.3,   -1.71, -0.34, 0.66,  -0.49, -1.29, -0.32, -1.5,  -1.23,
              -0.02, 2.18, -0.67, -0.11, -1.36, -0.75, -0.03, -2.02, 1.74,  -0.66, 0.6,   1.87,
              0.93,  2.2,  1.55,  0.47,  -1.06, 1.44,  1.37,  0.09,  0.56,  -0.5,  -1.96, 0.71},
             {4, 2, 3, 2});
  const HostHandle b = floats({1.3, 0.78, -0.48, 1.04}, {4});
  const HostHandle g =
      floats({0.04, -0.67, 0.06,  -2.58, -0.78, -0.59, 0.92,  -0.92, -0.1,  1.06,  -0.76, -1.45,
              -0.1, -1.28, -1.74, -0.59, 0.83,  -0.56, 0.06,  0.46,  -0.94, 0.79,  -0.39, 0.26,
              0.15, 0.09,  -1.17, -1.33, -1.64, 1.11,  -1.3,  1.37,  1.4,   -1.45, -0.96, 0.44,
              1.79, -0.08, -1.65, 0.33,  -1.2,  -1.74, -2.02, 0.77,  1.2,   -0.46, -1.72, 1.53,
              0.07, 1.57,  0.48,  -1.36, 0.01,  1.76,  1.27,  -0.26},
             {1, 4, 2, 7});
  const ConvOptions options{.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2};
  expect(Reference::float_conv2d(x, w, &b, options),
         {-6.7481, 2.9839,  -12.1761, 11.5105, -8.8651, 3.1432, -0.857,  3.5765,  1.911,  3.6485,
          3.1748,  -5.7752, 1.7734,   -1.8046, 2.7603,  0.2079, 5.3101,  -2.8001, 8.8372, -0.6194,
          3.6842,  6.4033,  2.034,    7.7114,  -2.5824, 2.3031, -1.2327, -0.6549, 0.1028, 1.2142,
          0.0026,  -1.9735, -5.8876,  -3.2518, -3.2844, 1.5118, -0.9275, -0.1397, 4.7453, 9.8265,
          3.2216,  2.4723,  2.3182,   -1.0925, 3.7635,  2.5436, -0.237,  0.6158,  2.4016, -1.1083,
          -2.1079, 2.841,   -1.33,    8.0364,  -1.2035, 0.7637},
         {1, 4, 2, 7});
  expect(Reference::float_conv2d_input_grad(w, g, x->shape(), options),
         {-1.9116, 2.7571,  2.0024, 2.9068,  -0.7674, 1.3645,   0.6753,  -1.6609, 2.835,   0.8531,
          0.827,   0.6072,  1.0656, 0.4446,  2.4273,  0.5642,   0.0237,  -1.7118, 3.0147,  4.2865,
          -0.3241, -5.5912, -1.894, -5.7355, 1.9022,  1.1143,   -2.468,  -1.9693, -8.7068, 1.6695,
          0.1948,  -1.8303, -1.584, 0.0495,  -3.3049, -3.0711,  -0.9201, 1.2563,  -0.9441, -4.1441,
          1.962,   -1.3911, -2.897, 2.9761,  -0.2107, 1.9672,   3.9012,  1.086,   -3.7096, 2.089,
          -1.3649, 1.1497,  1.8765, 2.9587,  1.5537,  3.4812,   1.5821,  -4.2128, 1.5377,  4.9289,
          0.5024,  1.0086,  1.7308, -2.3404, -1.6952, -10.2413, 0.8366,  5.0727,  3.4763,  -0.1286,
          -1.9762, -4.2868, 2.2926, -0.2928, -4.271,  4.5551,   2.6785,  -4.3668, -6.2876, 1.3323},
         {1, 4, 4, 5});
  expect(Reference::float_conv2d_weight_grad(x, g, w->shape(), options),
         {1.5476, 0.7888,  -4.5463, -4.1943, -5.2722, 0.2761,  1.9303,  -1.1692, -2.4998, -4.4209,
          0.83,   -3.3846, 2.6519,  1.2343,  -1.1254, 1.7107,  -1.4339, -3.3051, -2.2406, -2.3464,
          -0.398, -5.8744, -0.7831, 0.8442,  -0.4414, -4.3624, -0.4939, 0.773,   -2.0547, -1.687,
          2.8096, 0.199,   -4.1931, -1.9746, -2.0833, -2.3715, 2.1416,  0.5123,  -2.046,  -1.5071,
          2.1368, -6.4773, 1.1007,  -2.6409, 6.4945,  -2.6016, -2.4231, 5.029},
         {4, 2, 3, 2});
}

TEST_CASE("max_pool2d, ceil_mode") {
  const HostHandle x = floats({-0.29, 0.31,  0.08,  -0.14, -0.66, -0.98, -0.2,  -0.24, -1,    2.65,
                               0.67,  -1.24, -0.18, 1.32,  2.72,  1.07,  -1.14, 2.57,  -0.57, -0.8},
                              {1, 1, 4, 5});
  const HostHandle g =
      floats({-1.57, 0.36, -0.28, -0.01, -1.19, 0.28, 0.66, -0.53, -0.22}, {1, 1, 3, 3});
  const PoolOptions options{
      .kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true};
  const auto [y, indices] = Reference::float_max_pool2d(x, options);
  expect(y, {-0.29, 0.31, 2.65, 1.07, 2.57, 2.72, 1.07, 2.57, -0.57}, {1, 1, 3, 3});
  expect(indices, {0, 1, 9, 15, 17, 14, 15, 17, 18}, {1, 1, 3, 3});
  expect(Reference::float_max_pool2d_backward(g, indices, x->shape(), options),
         {-1.57, 0.36, 0, 0, 0, 0, 0, 0, 0, -0.28, 0, 0, 0, 0, 0.28, 0.65, 0, -1.72, -0.22, 0},
         {1, 1, 4, 5});
}

TEST_CASE("max_pool2d, dilation") {
  const HostHandle x = floats({0.11, 0.02, -0.12, 1.28, -0.1, -0.57, -1.03, -0.13, 1.57, 0.77,
                               -0.98, -0.14, -0.73, 0.37, -0.35, 0.67},
                              {1, 1, 4, 4});
  const HostHandle g = floats({0.55, 0.54, 0.64, -1.24, -1.68, 1.78}, {1, 1, 2, 3});
  const PoolOptions options{.kernel = {2, 2}, .stride = {1, 1}, .dilation = {2, 1}};
  const auto [y, indices] = Reference::float_max_pool2d(x, options);
  expect(y, {1.57, 0.77, 1.28, 0.37, 0.37, 0.67}, {1, 1, 2, 3});
  expect(indices, {8, 9, 3, 13, 13, 15}, {1, 1, 2, 3});
  expect(Reference::float_max_pool2d_backward(g, indices, x->shape(), options),
         {0, 0, 0, 0.64, 0, 0, 0, 0, 0.55, 0.54, 0, 0, 0, -2.92, 0, 1.78}, {1, 1, 4, 4});
}

TEST_CASE("avg_pool2d, padding counts") {
  const HostHandle x = floats({0.84, 0.79,  1.91, -1.41, -0.09, 0.8,  -0.92, -1.88, 0.25,  -2.1,
                               2.08, -0.22, 0.28, -0.14, -0.33, 1.79, -0.4,  -1.32, -0.16, 1.7},
                              {1, 1, 4, 5});
  const HostHandle g =
      floats({-1.4, -0.02, -0.22, -0.08, 0.13, 0.72, -1.28, -0.15, -0.78}, {1, 1, 3, 3});
  const PoolOptions options{
      .kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true};
  expect(Reference::float_avg_pool2d(x, options),
         {0.273333333333, -0.016666666667, -0.558333333333, 0.778333333333, -0.743333333333, -0.13,
          0.4475, -0.43, 0.385},
         {1, 1, 3, 3});
  expect(Reference::float_avg_pool2d_backward(g, x->shape(), options),
         {-0.233333333333,
          -0.003333333333,
          -0.003333333333,
          -0.036666666667,
          -0.036666666667,
          -0.246666666667,
          0.018333333333,
          0.018333333333,
          0.083333333333,
          0.083333333333,
          -0.013333333333,
          0.021666666667,
          0.021666666667,
          0.12,
          0.12,
          -0.333333333333,
          -0.015833333333,
          -0.015833333333,
          -0.075,
          -0.075},
         {1, 1, 4, 5});
}

TEST_CASE("avg_pool2d, padding does not count") {
  const HostHandle x = floats({1.09, 0.41, 0.79, 0.9,   0.14,  0.8,  -0.26, -0.22, -0.24, -1.33,
                               0.57, 0.18, 0.15, -1.05, -0.95, 0.65, -0.69, -1.23, -0.85, -0.14},
                              {1, 1, 4, 5});
  const HostHandle g =
      floats({-0.5, -1.43, -0.07, -1.28, 0.29, -0.35, -0.29, 0.41, -0.6}, {1, 1, 3, 3});
  const PoolOptions options{.kernel = {3, 2},
                            .stride = {2, 2},
                            .padding = {1, 1},
                            .ceil_mode = true,
                            .count_include_pad = false};
  expect(Reference::float_avg_pool2d(x, options),
         {0.945, 0.18, -0.1325, 0.673333333333, -0.345, -0.76, 0.65, -0.96, -0.495}, {1, 1, 3, 3});
  expect(Reference::float_avg_pool2d_backward(g, x->shape(), options),
         {-0.25,           -0.3575,         -0.3575,         -0.0175,         -0.0175,
          -0.676666666667, -0.309166666667, -0.309166666667, -0.075833333333, -0.075833333333,
          -0.426666666667, 0.048333333333,  0.048333333333,  -0.058333333333, -0.058333333333,
          -0.716666666667, 0.253333333333,  0.253333333333,  -0.358333333333, -0.358333333333},
         {1, 1, 4, 5});
}

TEST_CASE("batch_norm") {
  const HostHandle x =
      floats({-1.28, -0.27, -0.01, -0.2, 1.17,  1.22,  0.86,  -0.2,  0.48, 1.36, 0.85,  1.4,
              -0.14, 0.29,  0.05,  0.68, -1.64, -0.72, -0.34, -1.04, 0.13, 0.44, -0.07, 1.81},
             {2, 3, 2, 2});
  const HostHandle w = floats({0.63, -0.28, 1.24}, {3});
  const HostHandle b = floats({-1.82, 0.14, -0.18}, {3});
  const HostHandle g =
      floats({0.81, 0.89, 1.01,  -0.48, -0.1,  0.71, -1.26, 1.48, 0.54,  0.87, 0.8,  -0.79,
              0.6,  1.28, -0.22, -0.09, -0.46, 0.06, 0.06,  0.28, -0.08, 0.79, 0.82, -1.65},
             {2, 3, 2, 2});
  const auto [y, mean, var] = Reference::float_batch_norm(x, &w, &b, 1e-3);
  expect(y, {-3.215732380413, -2.010869385356, -1.700706634153, -1.927364029263, -0.211957110707,
             -0.225965353919, -0.125106002791, 0.171868753308,  -0.813160140255, 0.928030245447,
             -0.081068728085, 1.007175262979,  -1.855788009754, -1.342826536611, -1.629130614644,
             -0.877582409806, 0.575306157819,  0.317554482715,  0.211091834302,  0.407207239273,
             -1.50567904366,  -0.892305157787, -1.901404131319, 1.818411692681},
         {2, 3, 2, 2});
  expect(mean, {-0.11, -0.08625, 0.8}, {3});
  expect(var, {0.2779, 0.9978234375, 0.39175}, {3});
  const auto [gx, gw, gb] = Reference::float_batch_norm_backward(g, x, &w, mean, var, 1e-3);
  expect(gx, {0.050449459549,  0.44731590368,   0.66806423515,   -1.166111898921, 0.047741666794,
              -0.179480059823, 0.374519666111,  -0.387022506429, 0.196734689546,  2.362721221066,
              1.34734190651,   -0.853022454832, 0.140163288949,  1.079690506537,  -0.781337328052,
              -0.438234166891, 0.164797103699,  0.013808741226,  0.011618523221,  -0.045983134798,
              -1.631790409368, 0.622616497444,  -0.194900273282, -1.849701177085},
         {2, 3, 2, 2});
  expect(gw, {-1.056977092317, -0.164484291503, -4.35664599531}, {3});
  expect(gb, {3.8, 0.77, 1.3}, {3});
  const HostHandle running_mean = floats({-0.97, -0.29, 0.74}, {3});
  const HostHandle running_var = floats({0.82, 1.28, 1.7}, {3});
  expect(Reference::float_batch_norm_inference(x, running_mean, running_var, &w, &b, 1e-3),
         {-2.035541382797, -1.333293651749, -1.152517008113, -1.284623016924, -0.221190502692,
          -0.233560040456, -0.144499368559, 0.117734832026,  -0.427196818147, 0.40946933558,
          -0.075416730784, 0.447499615295,  -1.242905329931, -0.943928573149, -1.11079932112,
          -0.672763607695, 0.473977519613,  0.246378024765,  0.152369537763,  0.325543066451,
          -0.759961765652, -0.465227097862, -0.950113164226, 0.837309982373},
         {2, 3, 2, 2});
}

TEST_CASE("layer_norm") {
  const HostHandle x = floats(
      {-1.41, 2.13, 1.61, 0.27, -1.12, -1.45, 0.98, -1.13, 1.68, -0.69, 1.13, 1.08}, {3, 2, 2});
  const HostHandle w = floats({1.15, 0.02, -1.03, 1.07}, {2, 2});
  const HostHandle b = floats({0.6, 0.73, -0.31, 0.64}, {2, 2});
  const HostHandle g = floats(
      {-0.72, -0.87, -0.85, 0.35, -0.58, -0.21, -0.81, -1.3, 1.28, -0.69, 1.68, 0.67}, {3, 2, 2});
  const auto [y, mean, rstd] = Reference::float_layer_norm(x, &w, &b, 2, 1e-3);
  expect(y,
         {-1.129611816636, 0.751611021432, -1.031924932161, 0.34314049614, 0.077307868846,
          0.714091978617, -2.076203568869, 0.142616084682, 1.733969188142, 0.696608417187,
          -0.690865738191, 0.97570866479},
         {3, 2, 2});
  expect(mean, {0.65, -0.68, 0.8}, {3, 1, 1});
  expect(rstd, {0.730102075406, 1.032988401491, 1.120522913184}, {3, 1, 1});
  const auto [gx, gw, gb] = Reference::float_layer_norm_backward(g, x, &w, mean, rstd, 2);
  expect(gx,
         {-0.201737372714, -0.428991812962, 0.343232458681, 0.287496726995, -0.092106663238,
          0.802404288777, 0.123333663423, -0.833631288962, 1.232149240133, 0.355533860594,
          -2.173284366297, 0.58560126557},
         {3, 2, 2});
  expect(gw, {2.608663047713, 0.378964399273, -1.363501595106, 0.717404737356}, {2, 2});
  expect(gb, {-0.02, -1.77, 0.02, -0.28}, {2, 2});
}

TEST_CASE("softmax, log_softmax and their gradients") {
  const HostHandle x = floats({-0.65, -0.1, -1.14, -0.6, 0.05, -0.89}, {2, 3});
  const HostHandle g = floats({1.12, -0.31, -1.94, -0.31, 1.53, -0.74}, {2, 3});
  expect(Reference::float_softmax(x, 0),
         {0.487502603516, 0.462570154656, 0.437823499114, 0.512497396484, 0.537429845344,
          0.562176500886},
         {2, 3});
  expect(Reference::float_softmax_backward(g, Reference::float_softmax(x, 0), 0),
         {0.357276655566, -0.457422172287, -0.295360899285, -0.357276655566, 0.457422172287,
          0.295360899285},
         {2, 3});
  expect(Reference::float_log_softmax(x, 0),
         {-0.718459648013, -0.77095704779, -0.825939419879, -0.668459648013, -0.62095704779,
          -0.575939419879},
         {2, 3});
  expect(Reference::float_log_softmax_backward(g, Reference::float_log_softmax(x, 0), 0),
         {0.725122891152, -0.874335588681, -0.766633022374, -0.725122891152, 0.874335588681,
          0.766633022374},
         {2, 3});
  expect(Reference::float_softmax(x, 1),
         {0.29887508689, 0.518026146317, 0.183098766793, 0.272940335169, 0.522828355901,
          0.20423130893},
         {2, 3});
  expect(Reference::float_softmax_backward(g, Reference::float_softmax(x, 1), 1),
         {0.388854305667, -0.066794490425, -0.322059815242, -0.238600268298, 0.50495561912,
          -0.266355350822},
         {2, 3});
  expect(Reference::float_log_softmax(x, 1),
         {-1.207729562481, -0.657729562481, -1.697729562481, -1.298502060177, -0.648502060177,
          -1.588502060177},
         {2, 3});
  expect(Reference::float_log_softmax_backward(g, Reference::float_log_softmax(x, 1), 1),
         {1.457728848186, 0.275369545338, -1.733098393524, -0.441011360881, 1.279042389167,
          -0.838031028286},
         {2, 3});
}

TEST_CASE("activations and their gradients") {
  const HostHandle x = floats({-3, -1, -0.5, 0, 0.25, 1, 2.5}, {7});
  const HostHandle g = floats({1.74, -0.75, -0.18, -0.49, -0.11, -1.03, 1.03}, {7});
  expect(Reference::float_relu(x), {0, 0, 0, 0, 0.25, 1, 2.5}, {7});
  expect(Reference::float_relu_backward(g, Reference::float_relu(x)),
         {0, 0, 0, 0, -0.11, -1.03, 1.03}, {7});
  expect(Reference::float_sigmoid(x),
         {0.047425873178, 0.26894142137, 0.377540668798, 0.5, 0.562176500886, 0.73105857863,
          0.924141819979},
         {7});
  expect(Reference::float_sigmoid_backward(g, Reference::float_sigmoid(x)),
         {0.078607387932, -0.147458949931, -0.042300668196, -0.1225, -0.027074749101,
          -0.202510291239, 0.072206828041},
         {7});
  expect(Reference::float_tanh(x),
         {-0.995054753687, -0.761594155956, -0.46211715726, 0, 0.244918662404, 0.761594155956,
          0.986614298151},
         {7});
  expect(Reference::float_tanh_backward(g, Reference::float_tanh(x)),
         {0.017166904668, -0.314980756211, -0.141560591934, -0.49, -0.103401633369, -0.432573571862,
          0.027389993484},
         {7});
  expect(Reference::float_silu(x),
         {-0.142277619533, -0.26894142137, -0.188770334399, 0, 0.140544125221, 0.73105857863,
          2.310354549947},
         {7});
  expect(Reference::float_silu_backward(g, x),
         {-0.153301144466, -0.054247116096, -0.046806986286, -0.245, -0.068608102373,
          -0.955500627228, 1.132383144682},
         {7});
  expect(Reference::float_gelu(x, false),
         {-0.004049694095, -0.158655253931, -0.154268769363, 0, 0.149676581421, 0.841344746069,
          2.484475836686},
         {7});
  expect(Reference::float_gelu_backward(g, x, false),
         {-0.020785426135, 0.062486602941, -0.023850877562, -0.245, -0.076491069037,
          -1.115814934705, 1.068739418485},
         {7});
  expect(Reference::float_gelu(x, true),
         {-0.003637392082, -0.158808009392, -0.154285990175, 0, 0.149675350702, 0.841191990608,
          2.48491573391},
         {7});
  expect(Reference::float_gelu_backward(g, x, true),
         {-0.020156449938, 0.062223062884, -0.023873417364, -0.245, -0.076488950467,
          -1.115453006361, 1.069090123499},
         {7});
}

TEST_CASE("cross_entropy and its gradient") {
  const HostHandle x = floats(
      {-0.98, -0.58, -0.68, 1.04, -1.96, 2.42, -0.27, -1.03, -0.17, -0.75, 1.65, -0.15}, {4, 3});
  const HostHandle targets = ints({2, 0, -100, 1}, {4});
  const HostHandle g = floats({-2.02, -0.48, -1.25, 0.16}, {4});
  const CrossEntropyOptions options0{.label_smoothing = 0.0};
  const auto [loss0, lse0] = Reference::float_cross_entropy(x, targets, options0);
  expect(loss0, {1.045910683342, 1.614363500954, 0, 0.227945476802}, {4});
  expect(lse0, {0.365910683342, 2.654363500954, 0.675009315244, 1.877945476802}, {4});
  expect(Reference::float_cross_entropy_backward(g, x, targets, lse0, options0),
         {-0.525811144322, -0.784418051394, 1.310229195716, 0.384471693859, -0.004756074309,
          -0.37971561955, 0, 0, 0, 0.011556272214, -0.032613173079, 0.021056900864},
         {4, 3});
  const CrossEntropyOptions options2{.label_smoothing = 0.2};
  const auto [loss2, lse2] = Reference::float_cross_entropy(x, targets, options2);
  expect(loss2, {1.059244016675, 1.722363500954, 0, 0.507945476802}, {4});
  expect(lse2, {0.365910683342, 2.654363500954, 0.675009315244, 1.877945476802}, {4});
  expect(Reference::float_cross_entropy_backward(g, x, targets, lse2, options2),
         {-0.391144477655, -0.649751384727, 1.040895862382, 0.320471693859, 0.027243925691,
          -0.34771561955, 0, 0, 0, 0.000889605548, -0.011279839745, 0.010390234198},
         {4, 3});
}

TEST_CASE("linear") {
  const HostHandle x = floats(
      {-1.06, 0.6, 1.05, -0.32, 0.86, 0.46, 1.84, 0.53, -1.05, -0.35, -0.24, -2.46}, {2, 2, 3});
  const HostHandle w = floats({-0.75, 0.34, -2.14, 1.32, -2.09, 0.01}, {2, 3});
  const HostHandle b = floats({-1.71, 0.68}, {2});
  expect(Reference::float_linear(x, w, &b),
         {-2.958, -1.9627, -2.162, -1.5352, -0.6628, 1.9906, 3.7353, 0.695}, {2, 2, 2});
  expect(Reference::float_linear(x, w, nullptr),
         {-1.248, -2.6427, -0.452, -2.2152, 1.0472, 1.3106, 5.4453, 0.015}, {2, 2, 2});
}

TEST_CASE("sgd_step") {
  std::vector<HostHandle> params = {floats({1, -2, 0.5}, {3})};
  {
    const std::vector<HostHandle> grads = {floats({0.5, -1, 2}, {3})};
    Reference::float_optimizer_step(params, grads, {}, SgdStep{.lr = 0.1, .weight_decay = 0.05});
    expect(params[0], {0.945, -1.89, 0.2975}, {3});
  }
  {
    const std::vector<HostHandle> grads = {floats({0.25, 0.5, -1}, {3})};
    Reference::float_optimizer_step(params, grads, {}, SgdStep{.lr = 0.1, .weight_decay = 0.05});
    expect(params[0], {0.915275, -1.93055, 0.3960125}, {3});
  }
  {
    const std::vector<HostHandle> grads = {floats({-0.75, 0.1, 0.3}, {3})};
    Reference::float_optimizer_step(params, grads, {}, SgdStep{.lr = 0.1, .weight_decay = 0.05});
    expect(params[0], {0.985698625, -1.93089725, 0.3640324375}, {3});
  }
}

TEST_CASE("sgd_step with momentum") {
  std::vector<HostHandle> params = {floats({1, -2, 0.5}, {3})};
  std::vector<HostHandle> buffers = {floats({kNan, kNan, kNan}, {3})};
  {
    const std::vector<HostHandle> grads = {floats({0.5, -1, 2}, {3})};
    Reference::float_optimizer_step(params, grads, buffers,
                                    SgdStep{.lr = 0.1,
                                            .momentum = 0.9,
                                            .dampening = 0.3,
                                            .weight_decay = 0.05,
                                            .first_step = true});
    expect(params[0], {0.945, -1.89, 0.2975}, {3});
  }
  {
    const std::vector<HostHandle> grads = {floats({0.25, 0.5, -1}, {3})};
    Reference::float_optimizer_step(params, grads, buffers,
                                    SgdStep{.lr = 0.1,
                                            .momentum = 0.9,
                                            .dampening = 0.3,
                                            .weight_decay = 0.05,
                                            .first_step = false});
    expect(params[0], {0.8746925, -1.819385, 0.18420875}, {3});
  }
  {
    const std::vector<HostHandle> grads = {floats({-0.75, 0.1, 0.3}, {3})};
    Reference::float_optimizer_step(params, grads, buffers,
                                    SgdStep{.lr = 0.1,
                                            .momentum = 0.9,
                                            .dampening = 0.3,
                                            .weight_decay = 0.05,
                                            .first_step = false});
    expect(params[0], {0.86085432625, -1.7564636525, 0.060601894375}, {3});
  }
}

TEST_CASE("sgd_step, Nesterov") {
  std::vector<HostHandle> params = {floats({1, -2, 0.5}, {3})};
  std::vector<HostHandle> buffers = {floats({kNan, kNan, kNan}, {3})};
  {
    const std::vector<HostHandle> grads = {floats({0.5, -1, 2}, {3})};
    Reference::float_optimizer_step(
        params, grads, buffers,
        SgdStep{.lr = 0.1, .momentum = 0.9, .nesterov = true, .first_step = true});
    expect(params[0], {0.905, -1.81, 0.12}, {3});
  }
  {
    const std::vector<HostHandle> grads = {floats({0.25, 0.5, -1}, {3})};
    Reference::float_optimizer_step(
        params, grads, buffers,
        SgdStep{.lr = 0.1, .momentum = 0.9, .nesterov = true, .first_step = false});
    expect(params[0], {0.817, -1.824, 0.148}, {3});
  }
  {
    const std::vector<HostHandle> grads = {floats({-0.75, 0.1, 0.3}, {3})};
    Reference::float_optimizer_step(
        params, grads, buffers,
        SgdStep{.lr = 0.1, .momentum = 0.9, .nesterov = true, .first_step = false});
    expect(params[0], {0.9028, -1.8106, 0.0262}, {3});
  }
}

TEST_CASE("adam_step") {
  std::vector<HostHandle> params = {floats({1, -2, 0.5}, {3})};
  std::vector<HostHandle> state = {floats({0, 0, 0}, {3}), floats({0, 0, 0}, {3})};
  {
    const std::vector<HostHandle> grads = {floats({0.5, -1, 2}, {3})};
    Reference::float_optimizer_step(params, grads, state,
                                    AdamStep{.lr = 0.1, .weight_decay = 0.05, .step = 1});
    expect(params[0], {0.900000001818, -1.900000000909, 0.400000000494}, {3});
  }
  {
    const std::vector<HostHandle> grads = {floats({0.25, 0.5, -1}, {3})};
    Reference::float_optimizer_step(params, grads, state,
                                    AdamStep{.lr = 0.1, .weight_decay = 0.05, .step = 2});
    expect(params[0], {0.805771798867, -1.862846251373, 0.372120854029}, {3});
  }
  {
    const std::vector<HostHandle> grads = {floats({-0.75, 0.1, 0.3}, {3})};
    Reference::float_optimizer_step(params, grads, state,
                                    AdamStep{.lr = 0.1, .weight_decay = 0.05, .step = 3});
    expect(params[0], {0.805684666589, -1.834500860152, 0.341817839731}, {3});
  }
}

TEST_CASE("adam_step, decoupled") {
  std::vector<HostHandle> params = {floats({1, -2, 0.5}, {3})};
  std::vector<HostHandle> state = {floats({0, 0, 0}, {3}), floats({0, 0, 0}, {3})};
  {
    const std::vector<HostHandle> grads = {floats({0.5, -1, 2}, {3})};
    Reference::float_optimizer_step(
        params, grads, state,
        AdamStep{.lr = 0.1, .weight_decay = 0.05, .decoupled = true, .step = 1});
    expect(params[0], {0.895000002, -1.890000001, 0.3975000005}, {3});
  }
  {
    const std::vector<HostHandle> grads = {floats({0.25, 0.5, -1}, {3})};
    Reference::float_optimizer_step(
        params, grads, state,
        AdamStep{.lr = 0.1, .weight_decay = 0.05, .decoupled = true, .step = 2});
    expect(params[0], {0.797307040467, -1.853916297366, 0.3688787967}, {3});
  }
  {
    const std::vector<HostHandle> grads = {floats({-0.75, 0.1, 0.3}, {3})};
    Reference::float_optimizer_step(
        params, grads, state,
        AdamStep{.lr = 0.1, .weight_decay = 0.05, .decoupled = true, .step = 3});
    expect(params[0], {0.801518184898, -1.829836882969, 0.33812763364}, {3});
  }
}

TEST_CASE("adam_step, amsgrad") {
  std::vector<HostHandle> params = {floats({1, -2, 0.5}, {3})};
  std::vector<HostHandle> state = {floats({0, 0, 0}, {3}), floats({0, 0, 0}, {3}),
                                   floats({0, 0, 0}, {3})};
  {
    const std::vector<HostHandle> grads = {floats({0.5, -1, 2}, {3})};
    Reference::float_optimizer_step(params, grads, state,
                                    AdamStep{.lr = 0.1, .amsgrad = true, .step = 1});
    expect(params[0], {0.900000002, -1.900000001, 0.4000000005}, {3});
  }
  {
    const std::vector<HostHandle> grads = {floats({0.25, 0.5, -1}, {3})};
    Reference::float_optimizer_step(params, grads, state,
                                    AdamStep{.lr = 0.1, .amsgrad = true, .step = 2});
    expect(params[0], {0.806782040477, -1.873366297371, 0.373366296702}, {3});
  }
  {
    const std::vector<HostHandle> grads = {floats({-0.75, 0.1, 0.3}, {3})};
    Reference::float_optimizer_step(params, grads, state,
                                    AdamStep{.lr = 0.1, .amsgrad = true, .step = 3});
    expect(params[0], {0.814979720111, -1.858556464461, 0.344459527626}, {3});
  }
}
