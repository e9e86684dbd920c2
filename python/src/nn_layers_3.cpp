#define KILN_LAYERS_PART 3
#include "nn_layers_part.h"
