#include "kiln/models/vae.h"

#include "kiln/nn/activation_layers.h"
#include "kiln/nn/conv_layers.h"
#include "kiln/nn/init.h"
#include "kiln/nn/relu.h"
#include "kiln/nn/sigmoid.h"
#include "kiln/nn/tanh.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/losses.h"

namespace kiln::models {

VAE::VAE(const VAEOptions& o)
    : fc1(o.input_dim, o.hidden_dim),
      fc21(o.hidden_dim, o.latent_dim),
      fc22(o.hidden_dim, o.latent_dim),
      fc3(o.latent_dim, o.hidden_dim),
      fc4(o.hidden_dim, o.input_dim) {
  require_positive("VAE", "input_dim", o.input_dim);
  require_positive("VAE", "hidden_dim", o.hidden_dim);
  require_positive("VAE", "latent_dim", o.latent_dim);
}

VAEOutput VAE::forward(const Tensor& x) {
  const Tensor hidden = relu(fc1(x.reshape({-1, fc1.in_features()})));
  const Tensor mu = fc21(hidden), logvar = fc22(hidden);
  const Tensor z = is_training() ? mu + randn_like(mu) * (logvar * 0.5).exp() : mu;
  return {decode(z), mu, logvar};
}

Tensor VAE::decode(const Tensor& z) { return sigmoid(fc4(relu(fc3(z)))); }

Tensor VAE::sample(int64_t n) {
  const NoGradGuard guard;
  const Tensor& weight = fc3.weight;
  return decode(
      randn({n, fc3.in_features()}, {.dtype = weight.dtype(), .device = weight.device()}));
}
KILN_MODULE_DEFINED(VAE, fc1, fc21, fc22, fc3, fc4)

Tensor vae_loss(const VAEOutput& output, const Tensor& x, double beta) {
  const Tensor& y = output.reconstruction;
  const Tensor error =
      functional::binary_cross_entropy(y, x.reshape(y.shape()), {}, functional::Reduction::sum);
  const Tensor& logvar = output.logvar;
  return error - (logvar + 1 - output.mu * output.mu - logvar.exp()).sum() * (0.5 * beta);
}

namespace {

nn::ConvTranspose2d grow(int64_t inputs, int64_t outputs, int64_t stride, int64_t padding) {
  nn::ConvTranspose2d conv(inputs, outputs, 4,
                           {.stride = stride, .padding = padding, .bias = false});
  conv.weight = nn::parameter({inputs, outputs, 4, 4}, normal(0.02));
  return conv;
}

nn::Conv2d shrink(int64_t inputs, int64_t outputs, int64_t stride, int64_t padding) {
  return conv2d(inputs, outputs, 4, {.stride = stride, .padding = padding, .bias = false},
                normal(0.02));
}

nn::BatchNorm2d norm(int64_t channels) {
  nn::BatchNorm2d out(channels);
  out.weight = nn::parameter({channels}, [](Tensor& x) { nn::init::normal_(x, 1, 0.02); });
  return out;
}

}  // namespace

DCGANGenerator::DCGANGenerator(const DCGANOptions& o) : main(grow(o.nz, 8 * o.ngf, 1, 0)) {
  require_positive("DCGANGenerator", "nz", o.nz);
  require_positive("DCGANGenerator", "ngf", o.ngf);
  require_positive("DCGANGenerator", "nc", o.nc);
  for (int64_t width = 8 * o.ngf; width >= o.ngf; width /= 2) {
    main.push_back(norm(width));
    main.push_back(nn::ReLU());
    main.push_back(grow(width, width > o.ngf ? width / 2 : o.nc, 2, 1));
  }
  main.push_back(nn::Tanh());
}
KILN_MODULE_DEFINED(DCGANGenerator, main)

DCGANDiscriminator::DCGANDiscriminator(const DCGANOptions& o)
    : main(shrink(o.nc, o.ndf, 2, 1), nn::LeakyReLU({.negative_slope = 0.2})) {
  require_positive("DCGANDiscriminator", "nc", o.nc);
  require_positive("DCGANDiscriminator", "ndf", o.ndf);
  for (int64_t width = o.ndf; width < 8 * o.ndf; width *= 2) {
    main.push_back(shrink(width, 2 * width, 2, 1));
    main.push_back(norm(2 * width));
    main.push_back(nn::LeakyReLU({.negative_slope = 0.2}));
  }
  main.push_back(shrink(8 * o.ndf, 1, 1, 0));
  main.push_back(nn::Sigmoid());
}
KILN_MODULE_DEFINED(DCGANDiscriminator, main)

}  // namespace kiln::models
