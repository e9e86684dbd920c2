// What the umbrella header costs a user: a ten-line program.
#include <cstdio>

#include <kiln/kiln.h>

int main() {
  kiln::Tensor a = kiln::ones({2, 3});
  kiln::Tensor b = a + a;
  std::printf("%lld\n", static_cast<long long>(b.numel()));
  return 0;
}
