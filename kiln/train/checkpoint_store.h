// CheckpointStore: the checkpoints of a run in a folder: written in the background from a copy,
// each whole or not at all, of which the last and the best are kept.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kiln/io/pickle_value.h"
#include "kiln/train/snapshot.h"

namespace kiln::train {

struct CheckpointPolicy {
  int64_t keep_last = 2;  // 1 or more
  int64_t keep_best = 0;  // beside them, by their metric
  bool larger_is_better = false;
};

struct CheckpointInfo {
  std::string path;
  int64_t step = 0;
  double metric = std::numeric_limits<double>::quiet_NaN();  // NaN: none was given
};

// A checkpoint is a PyTorch file, "step-000000012.pt"; torch.load and kiln.load read it. The file
// "checkpoints.json" keeps the metrics. To be used by one thread.
class CheckpointStore {
 public:
  // Makes the folder where there is none, tries that it can be written, removes what killed writers
  // left, and finds the checkpoints that are there. Throws ValueError for a policy out of range and
  // IoError when the folder cannot be written.
  explicit CheckpointStore(std::string folder, CheckpointPolicy policy = {});
  // Waits for the writer.
  ~CheckpointStore();
  CheckpointStore(const CheckpointStore&) = delete;
  CheckpointStore& operator=(const CheckpointStore&) = delete;

  // Copies the state and writes the copy in the background, as the checkpoint of this step; then
  // removes those that the policy does not keep. False, and nothing happens, while the one before
  // is still being written; with `wait` it waits for that one instead. What goes wrong in the
  // background is kept for take_error().
  bool save(const io::PickleValue& state, int64_t step,
            double metric = std::numeric_limits<double>::quiet_NaN(), bool wait = false);
  // The same, but the copy is made while the caller goes on: the step after a checkpoint can
  // compute its gradients meanwhile. Nothing should write into the state's tensors before
  // wait_copied() has returned. Where something has, as the tensors' versions tell, nothing is
  // saved: take_spoiled().
  bool save_overlapped(io::PickleValue state, int64_t step,
                       double metric = std::numeric_limits<double>::quiet_NaN(), bool wait = false);
  // Until the copy is made; the calling thread does its share of it.
  void wait_copied();
  // The same, but what was copied is held still.
  void wait_until_copied();
  // Whether the last overlapped copy was given up, since something wrote into the state; once.
  bool take_spoiled() { return spoiled_.exchange(false, std::memory_order_acq_rel); }
  bool is_copying() const {
    return !copied_.load(std::memory_order_acquire) || !judged_.load(std::memory_order_acquire);
  }
  bool is_writing() const { return writing_.load(std::memory_order_acquire); }
  // Until what was saved is on the disk. Throws the IoError of a write that failed.
  void wait();
  // What the last write failed with, once; empty when none did.
  std::string take_error();

  // Where the checkpoint of a step is in a store's folder.
  static std::string path_of(const std::string& folder, int64_t step);
  // Oldest first.
  std::vector<CheckpointInfo> list() const;
  // The best by metric; nothing when none has one.
  std::optional<CheckpointInfo> best() const;
  // Removes those of later steps: a run that goes on from an earlier one makes them again.
  void discard_after(int64_t step);
  const std::string& folder() const { return folder_; }

 private:
  bool begin(io::PickleValue state, CheckpointInfo info, bool wait, bool watch);
  void copy_and_write(const io::PickleValue& copy, CheckpointInfo info);
  bool judge_copy();
  CheckpointInfo info_of(int64_t step, double metric) const;
  void find();
  void read_index();
  void write(const io::PickleValue& state, CheckpointInfo info);
  void keep(const CheckpointInfo& info);
  void write_index(const std::vector<CheckpointInfo>& all) const;
  std::vector<CheckpointInfo> kept(std::vector<CheckpointInfo> all) const;
  bool is_better(double a, double b) const { return policy_.larger_is_better ? a > b : a < b; }

  std::string folder_;
  CheckpointPolicy policy_;
  int64_t process_;
  Snapshot snapshot_;
  std::thread writer_;
  std::atomic<bool> writing_{false};
  std::atomic<bool> copied_{true};
  std::atomic<bool> judged_{true};
  std::atomic<bool> spoiled_{false};
  io::PickleValue held_;      // what is being copied: its tensors go on the caller's thread
  mutable std::mutex mutex_;  // of what follows
  bool exact_ = true;         // whether the copy is the state at its call, once that is judged
  std::vector<CheckpointInfo> all_;
  std::string error_;
};

}  // namespace kiln::train
