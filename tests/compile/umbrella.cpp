// What the umbrella header costs a user: a ten-line program.
#include <kiln/kiln.h>

#include <cstdio>

int main() {
  kiln::Tensor a = kiln::ones({2, 3});
  kiln::Tensor b = a + a;
  std::printf("%lld\n", static_cast<long long>(b.numel()));
  return 0;
}
