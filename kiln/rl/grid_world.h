// GridWorld: a walk over a grid to a goal, past walls and pits (Sutton and Barto, 2018, chapter 4).
#pragma once

#include <utility>

#include "kiln/rl/environment.h"

namespace kiln::rl {

using Cell = std::pair<int64_t, int64_t>;  // row, column

struct GridWorldOptions {
  int64_t rows = 4;
  int64_t columns = 4;
  Cell start = {0, 0};
  Cell goal = {-1, -1};  // negative numbers count from the end
  std::vector<Cell> walls = {};
  std::vector<Cell> pits = {};  // stepping into one ends the episode
  double step_reward = -0.01;
  double goal_reward = 1.0;
  double pit_reward = -1.0;
  double slip = 0.0;  // with this probability the step goes to one side instead, each as likely
  int64_t time_limit = 100;
};

// Observation: a 1 for the cell that the agent is in, among rows * columns zeros. Actions: 0 up, 1
// right, 2 down, 3 left; where a wall or the edge is the agent stays. A step gives step_reward, one
// to the goal goal_reward, one into a pit pit_reward.
class GridWorld : public Environment {
 public:
  // Throws ValueError for an empty grid or one of more than 2^24 cells, cells outside it, a start
  // or goal in a wall or pit, and a slip outside [0, 1].
  explicit GridWorld(GridWorldOptions options = {});
  Space observation_space() const override;
  Space action_space() const override { return Space::discrete(4); }

  Cell cell() const { return cell_; }
  // Begins an episode there. Throws ValueError for a cell outside the grid and for a wall.
  void set_cell(Cell cell);
  const GridWorldOptions& options() const { return options_; }

 protected:
  void reset_state(std::span<float> observation) override;
  Outcome step_state(std::span<const double> action, std::span<float> observation) override;

 private:
  enum class Kind : uint8_t { free, wall, pit };
  Cell inside(const char* what, Cell cell) const;
  size_t place(Cell cell) const {
    return static_cast<size_t>(cell.first * options_.columns + cell.second);
  }
  void observe(std::span<float> observation) const;

  GridWorldOptions options_;
  std::vector<Kind> kinds_;
  Cell cell_;
};

}  // namespace kiln::rl
