// Kiln's side of tests/peer/files.py: a network that loads and saves model files.
//
//   files load MODEL X.npy Y.npy   the outputs of the network in MODEL, of inputs X
//   files save MODEL X.npy Y.npy   a new network, and its outputs
//   files copy IN OUT              a whole PyTorch checkpoint, read and written
#include <cstdio>
#include <exception>
#include <string>

#include "kiln/io/model_file.h"
#include "kiln/io/npy_file.h"
#include "kiln/io/torch_file.h"
#include "kiln/kiln.h"

using namespace kiln;

namespace {

// The same network as in files.py.
struct Net : nn::Module {
  nn::Conv2d conv1{3, 8, 3};
  nn::BatchNorm2d norm{8};
  nn::Conv2d conv2{8, 4, 3, {.stride = 2}};
  nn::Linear fc{4 * 6 * 6, 10};
  KILN_MODULE(Net, conv1, norm, conv2, fc)

  Tensor forward(const Tensor& x) const { return fc(gelu(conv2(relu(norm(conv1(x))))).flatten(1)); }
};

int run(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "copy" && argc == 4) {
    io::save_torch(argv[3], io::load_torch(argv[2]));
    return 0;
  }
  if (argc != 5 || (command != "load" && command != "save")) {
    std::fprintf(stderr, "files: wrong arguments\n");
    return 2;
  }
  Net net;
  const Tensor x = io::load_npy(argv[3]);
  if (command == "load") {
    io::load_model(net, argv[2]);
  } else {
    manual_seed(5);
    net.materialize();
    const NoGradGuard no_grad;
    net(randn({16, 3, 16, 16}));  // running statistics
    io::save_model(net, argv[2]);
  }
  net.eval();
  const NoGradGuard no_grad;
  io::save_npy(argv[4], net(x));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "files: %s\n", e.what());
    return 1;
  }
}
