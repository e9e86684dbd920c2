"""A residual network for small images: a data loader, SGD with momentum, a one-cycle schedule."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(1)
images = rng.normal(size=(160, 3, 16, 16)).astype(np.float32)
labels = rng.integers(0, 5, 160)
images += labels[:, None, None, None] * 0.3


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_planes: int, planes: int, stride: int = 1) -> None:
        super(BasicBlock, self).__init__()
        self.conv1 = nn.Conv2d(
            in_planes, planes, kernel_size=3, stride=stride, padding=1, bias=False
        )
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != self.expansion * planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(
                    in_planes, self.expansion * planes, kernel_size=1, stride=stride, bias=False
                ),
                nn.BatchNorm2d(self.expansion * planes),
            )

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        out = F.relu(out)
        return out


class ResNet(nn.Module):
    def __init__(
        self, block: type[BasicBlock], num_blocks: list[int], num_classes: int = 5
    ) -> None:
        super(ResNet, self).__init__()
        self.in_planes = 8
        self.conv1 = nn.Conv2d(3, 8, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.layer1 = self._make_layer(block, 8, num_blocks[0], stride=1)
        self.layer2 = self._make_layer(block, 16, num_blocks[1], stride=2)
        self.layer3 = self._make_layer(block, 24, num_blocks[2], stride=2)
        self.linear = nn.Linear(24 * block.expansion, num_classes)

    def _make_layer(
        self, block: type[BasicBlock], planes: int, num_blocks: int, stride: int
    ) -> nn.Sequential:
        layers: list[nn.Module] = []
        for stride in [stride] + [1] * (num_blocks - 1):
            layers.append(block(self.in_planes, planes, stride))
            self.in_planes = planes * block.expansion
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.layer3(self.layer2(self.layer1(out)))
        out = F.avg_pool2d(out, 4)
        out = out.view(out.size(0), -1)
        return self.linear(out)


device = "cuda" if torch.cuda.is_available() else "cpu"
trainset = TensorDataset(torch.from_numpy(images[:128]), torch.from_numpy(labels[:128]))
testset = TensorDataset(torch.from_numpy(images[128:]), torch.from_numpy(labels[128:]))
trainloader = DataLoader(trainset, batch_size=32, shuffle=False, num_workers=0, drop_last=True)
testloader = DataLoader(testset, batch_size=20, shuffle=False)
net = ResNet(BasicBlock, [1, 1, 1]).to(device)
for m in net.modules():
    if isinstance(m, (nn.Conv2d, nn.Linear)):
        fan = np.prod(m.weight.shape[1:])
        m.weight.data = torch.tensor(rng.normal(0, (2 / fan) ** 0.5, tuple(m.weight.shape))).float()
net.linear.bias.data.zero_()
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)
scheduler = optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=0.05, epochs=5, steps_per_epoch=len(trainloader)
)
for epoch in range(5):
    net.train()
    train_loss, correct, total, batch_idx = 0.0, 0, 0, 0
    for batch_idx, (inputs, targets) in enumerate(trainloader):
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        scheduler.step()
        train_loss += loss.item()
        _, predicted = outputs.max(1)
        total += targets.size(0)
        correct += predicted.eq(targets).sum().item()
        print("loss", loss.item(), optimizer.param_groups[0]["lr"])
    print("train", train_loss / (batch_idx + 1), total)
    net.eval()
    test_loss = 0.0
    with torch.no_grad():
        for inputs, targets in testloader:
            test_loss += criterion(net(inputs.to(device)), targets.to(device)).item() * len(targets)
    print("test", test_loss / len(testset))
