"""Programs that type checkers refuse. Nobody runs this file: test_typing.py reads it.

Each line whose comment says "wrong" is to be refused, with the code of mypy's that stands there. No other
line is.
"""

from collections.abc import Iterator

import kiln
from kiln import Tensor, nn, optim
from kiln.nn import functional as F
from kiln.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau, StepLR
from kiln.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset, random_split

x = kiln.randn(4, 3)
labels = kiln.randint(0, 2, (4,))
net = nn.Linear(3, 2)
optimizer = optim.SGD(net.parameters(), lr=0.1)


# ---- Tensors

y: Tensor = x.reshape(2, 6).transpose(0, 1) @ kiln.ones(2, 2)
values, indices = x.max(1)
rows: int = x.shape[0]
total: Tensor = x.max()
with kiln.no_grad():
    for parameter in net.parameters():
        parameter -= 0.1 * kiln.ones_like(parameter)
counts = kiln.zeros(3, dtype=int)
kiln.zeros("four", 3)  # wrong: arg-type
kiln.zeros(4, 3, dtype="float32")  # wrong: arg-type
kiln.zeros(4, 3, requires_gradient=True)  # wrong: call-arg
kiln.onse(4, 3)  # wrong: attr-defined
x.reshap(2, 6)  # wrong: attr-defined
x + "one"  # wrong: operator
x["row"]  # wrong: index
x.sum(dim="all")  # wrong: arg-type
x.to(3.5)  # wrong: call-overload
x.backward(retain=True)  # wrong: call-arg
x.requires_grad = "yes"  # wrong: assignment
name: str = x.shape  # wrong: assignment
count: int = x.sum()  # wrong: assignment
kiln.cat(3)  # wrong: arg-type
kiln.stack([x, 3])  # wrong: list-item
kiln.from_numpy()  # wrong: call-arg
x.grad.sum()  # wrong: union-attr


# ---- Modules


class Net(nn.Module):
    mask: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, 2))
        self.head = nn.Linear(2, 2)
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])
        self.register_buffer("mask", kiln.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x) * self.mask

    def width(self) -> str:
        return self.head.in_features  # wrong: return-value


class Half(nn.Linear):
    def forward(self, x: Tensor, by: float = 0.5) -> Tensor:
        return F.linear(x, self.weight, self.bias) * by


model = Net(8)
model.train().to("cpu").requires_grad_(False)
Net("eight")  # wrong: arg-type
nn.Linear("three", 2)  # wrong: arg-type
nn.Linear(3)  # wrong: call-arg
nn.Linear(3, 2, baias=False)  # wrong: call-arg
nn.Conv2d(3, 8)  # wrong: call-arg
nn.Conv2d(3, 8, kernel_size=3, padding=None)  # wrong: arg-type
nn.Dropout("half")  # wrong: arg-type
nn.Linaer(3, 2)  # wrong: attr-defined
nn.Sequential(nn.Linear(3, 2), nn.ReLU)  # wrong: arg-type
nn.Sequential([nn.Linear(3, 2)])  # wrong: arg-type
nn.ModuleList(nn.Linear(3, 2), nn.ReLU())  # wrong: call-arg
nn.ModuleDict({"fc": "Linear"})  # wrong: arg-type
nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), num_layers="six")  # wrong: arg-type
nn.MultiheadAttention(8, "two")  # wrong: arg-type
net(3)  # wrong: arg-type
net(x, x, x)  # wrong: call-arg
nn.CrossEntropyLoss()(x)  # wrong: call-arg
nn.CrossEntropyLoss(reduction=1)  # wrong: arg-type
nn.LSTM(3, 4)(x)[0].sum(axes=1)  # wrong: call-arg
model.load_state_dict("net.pt")  # wrong: arg-type
model.register_buffer(kiln.ones(2), "mask")  # wrong: arg-type, arg-type
model.apply(3)  # wrong: arg-type
model.named_parameters(recursive=True)  # wrong: call-arg
nn.init.xavier_uniform_(net)  # wrong: arg-type
nn.utils.clip_grad_norm_(model.parameters(), "one")  # wrong: arg-type
F.relu("x")  # wrong: arg-type
F.cross_entropy(x, labels, reduce="sum")  # wrong: arg-type
F.max_pool2d(x)  # wrong: call-overload
F.softmax(x, dim="1")  # wrong: arg-type


# ---- Optimizers and schedules


def closure() -> Tensor:
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x), labels)
    loss.backward()
    return loss


loss: Tensor = optimizer.step(closure)
optim.AdamW([{"params": net.parameters(), "lr": 1e-3}], betas=(0.9, 0.95), fused=True)
optim.Adam(net.named_parameters())
weights = [p for p in net.parameters() if p.dim() > 1]
optim.SGD([{"params": weights}, {"params": [net.bias], "lr": 0.1}], lr=0.2)
optim.Adam(3)  # wrong: arg-type
optim.Adam([1.0, 2.0])  # wrong: list-item, list-item
optim.Adam(net.parameters(), lr="fast")  # wrong: arg-type
optim.Adam(net.parameters(), betas=0.9)  # wrong: arg-type
optim.Adam(net.parameters(), momentum=0.9)  # wrong: call-arg
optim.SGD()  # wrong: call-arg
optim.Addam(net.parameters())  # wrong: attr-defined
optimizer.step(3)  # wrong: arg-type
optimizer.zero_gard()  # wrong: attr-defined
optimizer.add_param_group(net.parameters())  # wrong: arg-type
StepLR(optimizer, step_size="ten")  # wrong: arg-type
StepLR(net, step_size=10)  # wrong: arg-type
StepLR(optimizer, 10, gama=0.1)  # wrong: call-arg
LambdaLR(optimizer, lambda epoch: "slow")  # wrong: arg-type, return-value
ReduceLROnPlateau(optimizer).step()  # wrong: call-arg
optim.swa_utils.AveragedModel(net.parameters())  # wrong: arg-type


# ---- Data


class Squares(Dataset[tuple[Tensor, int]]):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return kiln.ones(2) * index, index * index


class Texts(Dataset[str]):
    def __getitem__(self, index: int) -> int:  # wrong: override
        return index


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        yield from range(3)


first: int = Squares()[0][1]
loader = DataLoader(Squares(), batch_size=2, shuffle=True, num_workers=0)
batches: int = len(loader) * len(loader.dataset)
numbers = DataLoader(range(10), batch_size=2)
half, rest = random_split(Squares(), [0.5, 0.5])
part: Subset[tuple[Tensor, int]] = half
pairs = [sample for sample, _ in part]
text: str = Squares()[0]  # wrong: assignment
DataLoader(3)  # wrong: arg-type
DataLoader(Squares(), batch_size="two")  # wrong: arg-type
DataLoader(Squares(), batchsize=2)  # wrong: call-arg
DataLoader(Squares(), collate_fn=3)  # wrong: arg-type
DataLoader(Stream(), worker_init_fn="seed")  # wrong: arg-type
TensorDataset([1, 2, 3])  # wrong: arg-type
random_split(Squares(), 3)  # wrong: arg-type
strings: Dataset[str] = Squares()  # wrong: assignment
len(Stream())  # wrong: arg-type


# ---- Gradients, functions, precision, files


@kiln.no_grad()
def measure(images: Tensor, times: int) -> float:
    out: float = net(images).sum().item() * times
    return out


@kiln.no_grad
def without_call(images: Tensor) -> Tensor:
    return net(images)


def loss_of(weight: Tensor, data: Tensor) -> Tensor:
    return (data @ weight).sum()


(gradient,) = kiln.autograd.grad(x.sum(), x)
per_sample = kiln.vmap(kiln.func.grad(loss_of), in_dims=(None, 0))(x, x)
measure(x, "twice")  # wrong: arg-type
measure(x)  # wrong: call-arg
without_call(3)  # wrong: arg-type
kiln.vmap(loss_of)(x)  # wrong: call-arg
kiln.func.grad(3)  # wrong: arg-type
kiln.autograd.grad(x.sum(), [3])  # wrong: list-item
kiln.autocast(dtype=kiln.bfloat16)  # wrong: call-arg
kiln.amp.GradScaler(growth_interval="often")  # wrong: arg-type
kiln.save(net.state_dict(), 3)  # wrong: arg-type
kiln.load("net.pt", weight_only=True)  # wrong: call-arg
kiln.manual_seed("seed")  # wrong: arg-type
kiln.set_default_dtype("float64")  # wrong: arg-type


# ---- Training, metrics, models, transforms

learner = kiln.train.Learner(net, optimizer, loss="classification", folder="run")
history = learner.fit(loader, epochs=1)
accuracy = kiln.metrics.Accuracy(task="multiclass", num_classes=2)
accuracy.update(net(x), labels)
augment = kiln.vision.transforms.Compose([kiln.vision.transforms.RandomHorizontalFlip()])
kiln.train.Learner(net, "sgd")  # wrong: arg-type
kiln.train.Learner("net")  # wrong: arg-type
kiln.train.Learner(net, optimizer, clip="one")  # wrong: call-arg
learner.fit(loader, epochs="ten")  # wrong: arg-type
learner.fitt(loader)  # wrong: attr-defined
kiln.train.EarlyStopping(patience="long")  # wrong: arg-type
kiln.metrics.Accuracy(num_classes=2)  # wrong: call-arg
accuracy.update(net(x))  # wrong: call-arg
kiln.metrics.Acuracy(task="binary")  # wrong: attr-defined
kiln.models.resnet81()  # wrong: attr-defined
kiln.models.UNet("rgb", 2)  # wrong: arg-type
kiln.vision.transforms.Normalize(0.5, 0.5)  # wrong: arg-type, arg-type
kiln.vision.transforms.RandomRotation("left")  # wrong: arg-type
kiln.audio.MelSpectrogram(sample_rate="high")  # wrong: arg-type
