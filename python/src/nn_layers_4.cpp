#define KILN_LAYERS_PART 4
#include "nn_layers_part.h"
