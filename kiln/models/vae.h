// A variational autoencoder (Kingma and Welling, 2014) and DCGAN (Radford et al., 2016), with the
// keys of PyTorch's examples.
#pragma once

#include "kiln/models/vision_blocks.h"

namespace kiln::models {

struct VAEOptions {
  int64_t input_dim = 784;
  int64_t hidden_dim = 400;
  int64_t latent_dim = 20;
};
struct VAEOutput {
  Tensor reconstruction;  // [N, input_dim], from 0 to 1
  Tensor mu;              // [N, latent_dim]
  Tensor logvar;          // [N, latent_dim]
};

// x [N, ..] with input_dim numbers each, from 0 to 1. In eval mode the code is mu.
class VAE : public nn::Module {
 public:
  explicit VAE(const VAEOptions& options = {});
  nn::Linear fc1, fc21, fc22, fc3, fc4;
  KILN_MODULE_DECLARED(VAE)
  VAEOutput forward(const Tensor& x);
  Tensor decode(const Tensor& z);
  // n new ones, [n, input_dim].
  Tensor sample(int64_t n);
};

// What the reconstruction lacks in bits of x, and beta times how far the codes are from a standard
// normal distribution; summed over the batch.
Tensor vae_loss(const VAEOutput& output, const Tensor& x, double beta = 1.0);

struct DCGANOptions {
  int64_t nz = 100;  // numbers of noise
  int64_t ngf = 64;  // widths
  int64_t ndf = 64;
  int64_t nc = 3;  // channels of the images
};
// Noise [N, nz, 1, 1] -> images [N, nc, 64, 64], from -1 to 1.
class DCGANGenerator : public nn::Module {
 public:
  explicit DCGANGenerator(const DCGANOptions& options = {});
  nn::Sequential main;
  KILN_MODULE_DECLARED(DCGANGenerator)
  Tensor forward(const Tensor& x) { return main(x); }
};
// Images [N, nc, 64, 64] -> how real each looks, [N], from 0 to 1.
class DCGANDiscriminator : public nn::Module {
 public:
  explicit DCGANDiscriminator(const DCGANOptions& options = {});
  nn::Sequential main;
  KILN_MODULE_DECLARED(DCGANDiscriminator)
  Tensor forward(const Tensor& x) { return main(x).reshape({-1}); }
};

}  // namespace kiln::models
