"""What a run keeps: checkpoints, and how a run goes on from one."""

from __future__ import annotations

import copy
import os
import warnings
from typing import TYPE_CHECKING, Any

from .. import _C, errors
from .. import _io
from .._C import _train
from ..amp.grad_scaler import GradScaler
from .callbacks import Callback
from .checkpoints import Clock
from .history import History
from .position import length_of, random_state, set_random_state

if TYPE_CHECKING:
    from collections.abc import Mapping


VERSION = 1


class Keeping:
    """A Learner's checkpoints. Part of Learner."""

    # What the other parts of a Learner have.
    model: Any
    optimizers: list[Any]
    schedules: list[Any]
    scaler: GradScaler | None
    ema: Any
    metrics: dict[str, Any]
    callbacks: list[Callback]
    extra_state: dict[str, Any]
    epoch: int
    batch: int
    step: int
    skipped: int
    seconds: float
    history: History
    values: dict[str, float]
    step_loss: Any
    _generators: list[Any]
    _running: Any
    _team: Any

    def _init_keeping(self, folder, plan):
        self.folder = None if folder is None else os.fspath(folder)
        self.plan = plan
        self.store = None
        self._clock = None
        self._log = None
        self._resumed_from = None
        self._saved = None  # where the run stood when its state was last copied
        self._overlaps = plan.overlap
        self._team_seed = None  # of a team's random numbers

    # ---- State

    def state_dict(self) -> dict[str, Any]:
        """All that the run goes on from, between two steps. Tensors are the run's own."""
        return {
            "version": VERSION,
            "kind": "kiln.train.Learner",
            "model": self.model.state_dict(),
            "optimizers": [o.state_dict() for o in self.optimizers],
            "schedules": [s.scheduler.state_dict() for s in self.schedules],
            "scaler": None if self.scaler is None else self.scaler.state_dict(),
            "ema": None if self.ema is None else self.ema.state_dict(),
            "metrics": {name: m.state_dict() for name, m in self.metrics.items()},
            "running": self._running.state_dict(),
            "callbacks": [c.state_dict() for c in self.callbacks],
            "extra": {name: o.state_dict() for name, o in self.extra_state.items()},
            "random": random_state(self._generators),
            "epoch_random": self._epoch_random,
            "epoch": self.epoch,
            "batch": self.batch,
            "step": self.step,
            "skipped": self.skipped,
            "seconds": self.seconds,
            "history": list(self.history),  # a plain list: any reader of PyTorch files knows it
            "values": self.values,
            "step_loss": _doubles(self.step_loss),
            "team_seed": self._team_seed,
            "stopped": self._stop_reason if self.batch == 0 else None,
            "log": () if self._log is None else self._log.position,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes it over; fit() then goes on from there, with data made the same way."""
        if not isinstance(state, dict) or state.get("kind") != "kiln.train.Learner":
            raise errors.ValueError(
                "Learner: this is no checkpoint of a Learner; expected what state_dict() gives"
            )
        if state["version"] > VERSION:
            raise errors.ValueError(
                f"Learner: the checkpoint is of a later version; got {state['version']}; expected"
                f" at most {VERSION}"
            )
        for name, ours, theirs in (
            ("optimizers", len(self.optimizers), len(state["optimizers"])),
            ("schedules", len(self.schedules), len(state["schedules"])),
            ("callbacks", len(self.callbacks), len(state["callbacks"])),
            ("metrics", sorted(self.metrics), sorted(state["metrics"])),
            ("extra_state", sorted(self.extra_state), sorted(state["extra"])),
            ("ema", self.ema is not None, state["ema"] is not None),
            ("scaler", self.scaler is not None, state["scaler"] is not None),
        ):
            if ours != theirs:
                raise errors.ValueError(
                    f"Learner: the checkpoint was made with other {name}; got {theirs}; expected {ours}"
                )
        self._wait_copied()
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"]):
            optimizer.load_state_dict(saved)
        for schedule, saved in zip(self.schedules, state["schedules"]):
            schedule.scheduler.load_state_dict(saved)
        if self.scaler is not None:
            self.scaler.load_state_dict(state["scaler"])
        if self.ema is not None:
            self.ema.load_state_dict(state["ema"])
        for name, metric in self.metrics.items():
            metric.load_state_dict(state["metrics"][name])
        for callback, saved in zip(self.callbacks, state["callbacks"]):
            callback.load_state_dict(saved)
        for name, owner in self.extra_state.items():
            owner.load_state_dict(state["extra"][name])
        self._running.load_state_dict(state["running"])
        self._epoch_random = state["epoch_random"]
        self._resume_random = state["random"]
        for name in ("epoch", "batch", "step", "skipped", "seconds", "values"):
            setattr(self, name, state[name])
        self.history = History(state["history"])
        self.step_loss = type(self.step_loss)("d", state["step_loss"].numpy().tobytes())
        self._stop_reason = state["stopped"]
        self._team_seed = state.get("team_seed")

    # ---- The folder

    def _open_for_all(self, resume, train, splits):
        """_open_folder() of the first process; the others load what it goes on from."""
        team = self._team
        if team is None:
            return self._open_folder(resume)
        for name, loader in {"train": train, **splits}.items():
            team.check_lengths(name, length_of(loader))
        seed = _C.initial_seed() if self.seed is None else self.seed
        loaded = self._open_folder(resume) if team.is_main else False
        path = team.of_main(self._resumed_from if loaded else None)
        if path is not None and not team.is_main:
            self.load_state_dict(_io.load(path))
        team.seed = team.of_main(seed if self._team_seed is None else self._team_seed)
        self._team_seed = team.seed
        return path is not None

    def _open_folder(self, resume):
        """Makes the folder ready; whether a checkpoint was loaded."""
        if self.folder is None:
            if resume:
                raise errors.ValueError("Learner.fit: resume=True needs a folder; got folder=None")
            return False
        if self._log is not None:  # the same object goes on, in the same files
            return self._resume_random is not None
        plan = self.plan
        self.store = _train.CheckpointStore(
            os.path.join(self.folder, "checkpoints"),
            plan.keep_last,
            plan.keep_best,
            plan.mode == "max",
        )
        found = self.store.list()
        if found and not resume and self.step == 0:
            raise errors.ValueError(
                f"Learner.fit: the folder {self.folder!r} holds a run of {found[-1]['step']} steps;"
                " expected resume=True to go on with it, or another folder"
            )
        state = self._load_newest(found) if resume and self.step == 0 else None
        self._log = _train.RunLog(
            self.folder,
            tensorboard=self._tensorboard,
            position=() if state is None else tuple(state["log"]),
        )
        self._clock = Clock(plan)
        if plan.overlap:
            for optimizer in self.optimizers:
                optimizer.register_step_pre_hook(self._wait_copied)
        return state is not None

    def _load_newest(self, found):
        """Of the newest checkpoint that can be read; None where there is none."""
        for info in reversed(found):
            try:
                state = _io.load(info["path"])
            except errors.IoError as error:
                warnings.warn(f"Learner: a checkpoint is passed over: {error}", stacklevel=4)
                continue
            self.load_state_dict(state)
            self.store.discard_after(info["step"])
            self._resumed_from = info["path"]
            self._saved = self._place()
            return state
        if found:
            raise errors.IoError(
                f"Learner.fit: none of the {len(found)} checkpoints in {self.folder!r} can be read;"
                " expected one to go on from"
            )
        return None

    def load_best(self) -> Any:
        """Gives the model the weights of the best checkpoint, averaged ones where they were kept."""
        best = None if self.store is None else self.store.best()
        if self._team is not None:
            best = self._team.of_main(best)
        if best is None:
            raise errors.ValueError("Learner.load_best: there is no checkpoint with a metric")
        self._wait_copied()
        state = _io.load(best["path"])
        if state["ema"] is not None:
            self.ema.load_state_dict(state["ema"])
            self.model.load_state_dict(self.ema.module.state_dict())
        else:
            self.model.load_state_dict(state["model"])
        return best

    # ---- Saving

    def _save(self, metric=float("nan"), wait=False):
        """Copies the state and lets it be written; while another is written, later."""
        if self._overlaps:
            saved = (wait or not self.store.is_writing) and self._save_overlapped(metric, wait)
        else:
            saved = self.store.save(self.state_dict(), self.step, metric, wait)
        if not saved:
            self._clock.is_late = True
            return
        self._saved = self._place()
        self._report_write_error()
        self._clock.restart()
        self._tell("checkpoint")

    def _save_overlapped(self, metric, wait):
        """Weights, their averages and the optimizers' state wait for the next step; what a forward
        pass or a metric may change is copied at once."""
        state = self.state_dict()
        weights = {name for name, _ in self.model.named_parameters(remove_duplicate=False)}
        for name, value in state["model"].items():
            if name not in weights and isinstance(value, _C.Tensor):
                state["model"][name] = value.clone()
        for part in ("metrics", "callbacks", "extra"):
            state[part] = copy.deepcopy(state[part])
        return self.store.save_overlapped(state, self.step, metric, wait)

    def _wait_copied(self, *_):
        """What waits for a copy is what writes into weights."""
        store = self.store
        if store is None:
            return
        if store.is_copying:
            store.wait_copied()
        if store.take_spoiled():
            self._overlaps = False
            self._clock.is_late = True
            self._saved = None
            self._note(
                "warning",
                "a checkpoint was given up: something besides the optimizers' steps writes into the"
                " state; from now on steps wait for copies",
            )

    def _place(self):
        return self.epoch, self.batch, self.step

    def _save_epoch(self, values):
        if self.store is None:
            return
        plan = self.plan
        if plan.every_epochs is None or self.epoch % plan.every_epochs != 0:
            return
        self._save(values.get(plan.metric, float("nan")), wait=True)

    def _report_write_error(self):
        """A disk that is full for a while must not end a run."""
        message = self.store.take_error()
        if not message:
            return
        self._saved = None
        kept = self.store.list()
        last = f"the last one is of step {kept[-1]['step']}" if kept else "there is none yet"
        self._note(
            "warning", f"no checkpoint could be written: {message}; {last}; training goes on"
        )

    def _finish(self):
        """The state at the end, on the disk."""
        if self._resume_random is not None:  # nothing was left to do
            set_random_state(self._resume_random, self._generators)
            self._resume_random = None
        if self.store is None:
            return
        self._settle()
        if self._saved != self._place():
            self._save_now()
        self._write_report()

    def _settle(self):
        """Until what was saved is on the disk, or is known not to be."""
        self._wait_copied()
        try:
            self.store.wait()
        except errors.IoError:
            self._saved = None

    def _save_now(self):
        self._settle()
        self.store.save(self.state_dict(), self.step, wait=True)
        self.store.wait()
        self._saved = self._place()
        self._tell("checkpoint")

    # ---- Ends

    def _watch(self):
        try:
            return _train.Interrupt()
        except errors.ValueError:  # another run of this process watches already
            return None

    def _end_interrupted(self):
        signal = 0 if self._interrupt is None else self._interrupt.signal
        asked = f"signal {signal}" if signal else "the key q"
        follows = self._team is not None and not self._team.is_main
        if follows and not signal:
            asked = "another process"
        self._tell("interrupt", signal)
        self._resume_random = random_state(self._generators)
        where = f"epoch {self.epoch + 1}, after batch {self.batch} (step {self.step})"
        if follows:
            pass  # the first process saves and says so
        elif self.store is None:
            self._note(
                "interrupt", f"Interrupted in {where}. Nothing is saved: there is no folder."
            )
        else:
            self._save_now()
            self._write_report()
            self._note(
                "interrupt",
                f"Interrupted in {where}. Saved {self.store.list()[-1]['path']}\n"
                "Go on with: fit(..., resume=True)",
            )
        from .learner import Interrupted

        raise Interrupted(f"{asked} in {where}")

    def _end_failed(self, error):
        self._tell("exception", error)
        if self.store is None:
            return
        try:
            self.store.wait()
        except errors.IoError as failed:
            error.add_note(str(failed))
        kept = self.store.list()
        if kept:
            error.add_note(
                f"The last checkpoint is {kept[-1]['path']!r}, of step {kept[-1]['step']};"
                " fit(..., resume=True) goes on from it."
            )


def _doubles(values):
    out = _C.empty(len(values), dtype=_C.float64)
    if values:
        out.numpy()[:] = values
    return out
