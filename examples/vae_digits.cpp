// A variational autoencoder learns digits that Kiln draws, then draws its own.
//
//   build/release/examples/vae_digits [--epochs 40] [--images 24000] [--out digits.png]
//
// The picture has 8 x 8 digits: the upper half are from the data, each with its reconstruction
// behind it; the lower half come from noise.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <kiln/io/image.h>
#include <kiln/kiln.h>
#include <kiln/models/models.h>

using namespace kiln;

namespace {

struct Options {
  int64_t epochs = 40;
  int64_t images = 24000;
  std::string out = "digits.png";
};

Options read(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--epochs") options.epochs = std::atoll(argv[i + 1]);
    if (name == "--images") options.images = std::atoll(argv[i + 1]);
    if (name == "--out") options.out = argv[i + 1];
  }
  return options;
}

// x [64, 784], from 0 to 1, as one picture of 8 x 8.
void write_grid(const Tensor& x, const std::string& path) {
  const Tensor rows = x.reshape({8, 8, 28, 28}).permute({0, 2, 1, 3}).reshape({1, 1, 224, 224});
  const Tensor large = functional::interpolate(rows, {.scale_factor = {3.0}, .mode = "bilinear"});
  io::write_png_gray(path, (large.reshape({672, 672}) * 255.0).to(u8).to_data());
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read(argc, argv);
  manual_seed(0);
  data::TensorDataset digits(data::make_digits(options.images, /*seed=*/1));
  data::DataLoader loader(digits, {.batch_size = 100, .shuffle = true, .drop_last = true});
  models::VAE model({.latent_dim = 8});
  optim::Adam optimizer(model.parameters(), {.lr = 1e-3});
  for (int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    double total = 0;
    for (const auto& [images, labels] : loader) {
      const Tensor x = images.to(f32).flatten(1) / 255.0;
      const Tensor loss = models::vae_loss(model(x), x) / double(x.size(0));
      optimizer.step(loss.backward());
      total += loss.item<double>();
    }
    std::printf("epoch %lld: loss %.2f\n", static_cast<long long>(epoch),
                total / double(loader.size()));
  }
  model.eval();
  const Tensor seen = digits.tensors()[0].narrow(0, 0, 16).to(f32).flatten(1) / 255.0;
  const Tensor pairs = stack({seen, model(seen).reconstruction.detach()}, 1).flatten(0, 1);
  write_grid(cat({pairs, model.sample(32)}), options.out);
  std::printf("wrote %s\n", options.out.c_str());
}
