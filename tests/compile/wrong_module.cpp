// Mistakes in KILN_MODULE lines, one for each CASE: each must be refused with a message that says
// what is wrong. CASE 0 has none.
#include "kiln/nn/linear.h"
#include "kiln/nn/module.h"
#include "kiln/nn/param.h"

using kiln::Tensor;
using kiln::nn::Linear;
using kiln::nn::Module;
using kiln::nn::Param;

struct Right : Module {
  Param<Tensor> weight;
  KILN_MODULE(Right, weight)
  Tensor forward(const Tensor& x) { return x; }
};

#if CASE == 1
// A plain tensor is no part.
struct Wrong : Module {
  Tensor weight;
  KILN_MODULE(Wrong, weight)
};
#elif CASE == 2
// Neither is a number.
struct Wrong : Module {
  int size = 3;
  KILN_MODULE(Wrong, size)
};
#elif CASE == 3
// A name that is no member.
struct Wrong : Module {
  Param<Tensor> weight;
  KILN_MODULE(Wrong, wieght)
};
#elif CASE == 4
// Another class's name.
struct Wrong : Module {
  Param<Tensor> weight;
  KILN_MODULE(Right, weight)
};
#elif CASE == 5
// No module at all.
struct Wrong {
  Param<Tensor> weight;
  KILN_MODULE(Wrong, weight)
};
#elif CASE == 6
// A part that cannot change.
struct Wrong : Module {
  const Param<Tensor> weight;
  KILN_MODULE(Wrong, weight)
};
#elif CASE == 7
// No line at all.
struct Wrong : Module {
  Linear fc{2, 2};
  Tensor forward(const Tensor& x) { return fc(x); }
};
Wrong wrong;
#elif CASE == 8
// The base's parts would be lost.
struct Wrong : Right {
  Linear fc{2, 2};
  KILN_MODULE(Wrong, fc)
};
#elif CASE == 9
// The same, with a base that is not the nearest one.
struct Wrong : Right {
  Linear fc{2, 2};
  KILN_MODULE_DERIVED(Wrong, Module, fc)
};
#elif CASE == 10
// libtorch's idiom: the member would be a copy of what is trained.
struct Wrong : Module {
  Linear fc = register_module("fc", Linear(2, 2));
  KILN_MODULE(Wrong)
};
Wrong wrong;
#elif CASE == 11
struct Wrong : Module {
  Linear fc = register_module("fc", std::make_shared<Linear>(2, 2));
  KILN_MODULE(Wrong)
};
Wrong wrong;
#elif CASE == 12
struct Wrong : Module {
  Param<Tensor> weight = register_parameter("weight", Tensor());
  KILN_MODULE(Wrong)
};
Wrong wrong;
#elif CASE == 13
struct Wrong : Module {
  kiln::nn::Buffer mean = register_buffer("mean", Tensor());
  KILN_MODULE(Wrong)
};
Wrong wrong;
#elif CASE == 14
// Called with something that forward does not take.
auto wrong(Right& net) { return net("text"); }
#elif CASE == 15
auto wrong(Right& net) { return net(Tensor(), 3); }
#elif CASE == 16
// Without a forward.
struct Wrong : Module {
  Linear fc{2, 2};
  KILN_MODULE(Wrong, fc)
};
auto wrong(Wrong& net) { return net(Tensor()); }
#elif CASE == 17
// forward is not const.
auto wrong(const Right& net) { return net(Tensor()); }
#endif

// What is right, beside each of the mistakes.
struct Derived : Right {
  Linear fc{2, 2};
  KILN_MODULE_DERIVED(Derived, Right, fc)
};
struct Twice : Derived {
  Linear more{2, 2};
  KILN_MODULE_DERIVED(Twice, Derived, more)
};
template <class Part>
struct Generic : Module {
  Part part{2, 2};
  KILN_MODULE(Generic, part)
};
struct Registers : Module {
  Linear& fc = register_module("fc", Linear(2, 2));
  std::shared_ptr<Linear> shared = register_module("shared", std::make_shared<Linear>(2, 2));
  Tensor weight = register_parameter("weight", Tensor());
  KILN_MODULE(Registers)
};

int main() {
  Right right;
  right(Tensor());
  Twice twice;
  twice(Tensor());
  Generic<Linear> generic;
  Registers registers;
}
