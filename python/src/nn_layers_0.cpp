#define KILN_LAYERS_PART 0
#include "nn_layers_part.h"
