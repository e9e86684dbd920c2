#include "kiln/rl/grid_world.h"

#include <algorithm>
#include <array>

#include "kiln/core/error.h"

namespace kiln::rl {

namespace {

constexpr int64_t kMostCells = int64_t{1} << 24;
constexpr std::array<Cell, 4> kMoves{{{-1, 0}, {0, 1}, {1, 0}, {0, -1}}};

}  // namespace

GridWorld::GridWorld(GridWorldOptions options)
    : Environment(options.time_limit), options_(std::move(options)) {
  GridWorldOptions& o = options_;
  if (o.rows < 1 || o.columns < 1 || o.rows > kMostCells / o.columns) {
    throw_error<ValueError>("GridWorld: a grid has from 1 to 2^24 cells; got ", o.rows,
                            " rows and ", o.columns, " columns");
  }
  if (!(o.slip >= 0 && o.slip <= 1)) {
    throw_error<ValueError>("GridWorld: slip must be from 0 to 1; got ", o.slip);
  }
  kinds_.assign(static_cast<size_t>(o.rows * o.columns), Kind::free);
  for (Cell& wall : o.walls) kinds_[place(wall = inside("wall", wall))] = Kind::wall;
  for (Cell& pit : o.pits) kinds_[place(pit = inside("pit", pit))] = Kind::pit;
  o.start = inside("start", o.start);
  o.goal = inside("goal", o.goal);
  for (const Cell& cell : {o.start, o.goal}) {
    if (kinds_[place(cell)] != Kind::free) {
      throw_error<ValueError>("GridWorld: start and goal must be free; got a wall or pit at (",
                              cell.first, ", ", cell.second, ")");
    }
  }
  cell_ = o.start;
}

Cell GridWorld::inside(const char* what, Cell cell) const {
  const Cell given = cell;
  if (cell.first < 0) cell.first += options_.rows;
  if (cell.second < 0) cell.second += options_.columns;
  if (cell.first < 0 || cell.first >= options_.rows || cell.second < 0 ||
      cell.second >= options_.columns) {
    throw_error<ValueError>("GridWorld: ", what, " lies outside the grid; got (", given.first, ", ",
                            given.second, ") in ", options_.rows, " x ", options_.columns);
  }
  return cell;
}

Space GridWorld::observation_space() const {
  return Space::box({options_.rows * options_.columns}, 0.0, 1.0);
}

void GridWorld::set_cell(Cell cell) {
  cell = inside("the cell", cell);
  if (kinds_[place(cell)] == Kind::wall) {
    throw_error<ValueError>("GridWorld: nobody can be in a wall; got (", cell.first, ", ",
                            cell.second, ")");
  }
  cell_ = cell;
  begin_episode();
}

void GridWorld::observe(std::span<float> observation) const {
  std::fill(observation.begin(), observation.end(), 0.0F);
  observation[place(cell_)] = 1.0F;
}

void GridWorld::reset_state(std::span<float> observation) {
  cell_ = options_.start;
  observe(observation);
}

Outcome GridWorld::step_state(std::span<const double> action, std::span<float> observation) {
  auto move = static_cast<size_t>(action[0]);
  if (options_.slip > 0) {
    const double drawn = random().uniform();
    if (drawn < options_.slip) move = (move + (drawn < options_.slip / 2 ? 1 : 3)) % 4;
  }
  const Cell next{cell_.first + kMoves[move].first, cell_.second + kMoves[move].second};
  if (next.first >= 0 && next.first < options_.rows && next.second >= 0 &&
      next.second < options_.columns && kinds_[place(next)] != Kind::wall) {
    cell_ = next;
  }
  observe(observation);
  if (cell_ == options_.goal) return {.reward = options_.goal_reward, .terminated = true};
  if (kinds_[place(cell_)] == Kind::pit) return {.reward = options_.pit_reward, .terminated = true};
  return {.reward = options_.step_reward};
}

}  // namespace kiln::rl
