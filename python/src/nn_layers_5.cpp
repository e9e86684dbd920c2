#define KILN_LAYERS_PART 5
#include "nn_layers_part.h"
