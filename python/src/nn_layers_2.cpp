#define KILN_LAYERS_PART 2
#include "nn_layers_part.h"
