#include "gradient_cases.h"
#include "kiln/backend/reference/reference.h"

TEST_CASE("every gradient on Autodiff<Reference> agrees with finite differences to second order") {
  gradcheck::check_all<kiln::Reference>(kiln::kReference);
}
