// A layer of one's own in a model that trains, saves and loads.
//
//   build/release/examples/custom_layer
#include <cstdio>
#include <iostream>

#include <kiln/kiln.h>

using namespace kiln;

namespace {

// x [.., features] with each feature scaled by the others' mean: x sigmoid(a mean + b).
struct Gate : nn::Module {
  explicit Gate(int64_t features)
      : a(nn::parameter({features}, nn::init::ones_)),
        b(nn::parameter({features}, nn::init::zeros_)) {}
  nn::Param<Tensor> a, b;
  KILN_MODULE(Gate, a, b)
  Tensor forward(const Tensor& x) const { return x * sigmoid(x.mean(-1, true) * *a + *b); }
};

struct Net : nn::Module {
  nn::Linear in{8, 32};
  Gate gate{32};
  nn::Linear out{32, 1};
  KILN_MODULE(Net, in, gate, out)
  Tensor forward(const Tensor& x) const { return out(gate(in(x))); }
};

}  // namespace

int main() {
  manual_seed(0);
  const Tensor x = randn({256, 8});
  const Tensor y = x.narrow(1, 0, 1) * x.narrow(1, 1, 1);
  Net net;
  std::cout << net << "\n";
  optim::AdamW optimizer(net.parameters(), {.lr = 1e-2});
  for (int step = 0; step < 300; ++step) {
    const Tensor loss = functional::mse_loss(net(x), y);
    if (step % 100 == 0) std::printf("step %d: loss %.3f\n", step, loss.item());
    optimizer.step(loss.backward());
  }
  io::save_model(net, "net.safetensors");
  Net again;
  io::load_model(again, "net.safetensors");
  std::printf("%s\n",
              again(x).equal(net(x)) ? "the file gives the same net" : "something is wrong");
}
