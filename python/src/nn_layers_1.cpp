#define KILN_LAYERS_PART 1
#include "nn_layers_part.h"
