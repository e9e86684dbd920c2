// Reinforcement learning: environments, replay buffers, and the loops that train agents.
#pragma once

#include "kiln/rl/advantages.h"
#include "kiln/rl/cart_pole.h"
#include "kiln/rl/dqn.h"
#include "kiln/rl/exploration.h"
#include "kiln/rl/grid_world.h"
#include "kiln/rl/pendulum.h"
#include "kiln/rl/ppo.h"
#include "kiln/rl/replay_buffer.h"
#include "kiln/rl/training.h"
#include "kiln/rl/vector_environment.h"
