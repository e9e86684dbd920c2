// Mistakes in KILN_MODULE lines, one for each CASE: each must be refused with a message that says
// what is wrong. CASE 0 has none.
#include "kiln/nn/module.h"
#include "kiln/nn/param.h"

using kiln::Tensor;
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
#endif

int main() {
  Right right;
  right(Tensor());
}
