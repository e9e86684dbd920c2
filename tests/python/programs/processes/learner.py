"""A Learner's run: its folder, epochs, "resume" or "", the step at which a process is killed, dropout."""

import os
import signal

import kiln
from kiln import distributed, nn, train
from kiln.utils.data import DataLoader, DistributedSampler, TensorDataset
from report import ARGUMENTS, RANK, SIZE, note, write

runs, epochs, resume, kill_at, dropout = ARGUMENTS
distributed.init_process_group(timeout=30)


class Killed(train.Callback):
    """The process of rank 1 ends as by a crash, in the launcher's first attempt."""

    def step_end(self, learner):
        first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
        if first and RANK == 1 and learner.step == int(kill_at):
            os.kill(os.getpid(), signal.SIGKILL)


def loader(data, shuffle):
    sampler = DistributedSampler(data, shuffle=shuffle, seed=3)
    return DataLoader(data, batch_size=12 // SIZE, sampler=sampler)


kiln.manual_seed(5)
layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(float(dropout)), nn.Linear(8, 3))
net = nn.parallel.DistributedDataParallel(layers)
x = (kiln.arange(240.0) * 1.7).sin().view(60, 4)
data = TensorDataset(x, x[:, :3].argmax(1))
learner = train.Learner(
    net,
    kiln.optim.SGD(net.parameters(), lr=0.1, momentum=0.9),
    loss="classification",
    metrics="accuracy",
    ema=0.9,
    folder=runs or None,
    checkpoints=train.Checkpoints(every_steps=2, metric="valid/loss") if runs else None,
    progress="plain",
    seed=1,
    callbacks=[Killed()],
)
history = learner.fit(
    loader(data, True), loader(data, False), epochs=int(epochs), resume=resume == "resume"
)
note("best", learner.load_best()["step"] if runs else 0)
note("weights", list(net.parameters()))
note("history", [[*pair] for entry in history for pair in entry.items() if pair[0] != "seconds"])
note("step_loss", list(learner.step_loss))
note("measured", list(learner.evaluate(loader(data, False)).values()))
write()
