#include "gradient_cases.h"
#include "kiln/backend/cpu/cpu.h"

TEST_CASE("every gradient on Autodiff<Cpu> agrees with finite differences to second order") {
  gradcheck::check_all<kiln::Cpu>(kiln::kCpu);
}
