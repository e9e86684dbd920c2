"""A DCGAN: transposed convolutions, two optimizers, labels for real and fake, a weights_init."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch import Tensor

rng = np.random.default_rng(5)
nz, ngf, ndf, nc = 8, 6, 6, 1


def weights_init(m: nn.Module) -> None:
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        m.weight.data.copy_(torch.from_numpy(rng.normal(0.0, 0.1, tuple(m.weight.shape))))
    elif classname.find("BatchNorm") != -1:
        m.weight.data.copy_(torch.from_numpy(rng.normal(1.0, 0.02, tuple(m.weight.shape))))
        nn.init.constant_(m.bias.data, 0)


class Generator(nn.Module):
    def __init__(self) -> None:
        super(Generator, self).__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input: Tensor) -> Tensor:
        output: Tensor = self.main(input)
        return output


class Discriminator(nn.Module):
    def __init__(self) -> None:
        super(Discriminator, self).__init__()
        self.main = nn.Sequential(
            nn.Conv2d(nc, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input: Tensor) -> Tensor:
        output: Tensor = self.main(input)
        return output


def noise() -> Tensor:
    return torch.from_numpy(rng.normal(size=(16, nz, 1, 1)).astype(np.float32))


device = torch.device("cpu")
netG = Generator().to(device)
netG.apply(weights_init)
netD = Discriminator().to(device)
netD.apply(weights_init)
criterion = nn.BCELoss()
fixed_noise = noise()
real_label, fake_label = 1.0, 0.0
optimizerD = optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
for i in range(20):
    netD.zero_grad()
    real = np.tanh(rng.normal(0.5, 0.3, (16, nc, 16, 16)).astype(np.float32))
    real_cpu = torch.from_numpy(real).to(device)
    b_size = real_cpu.size(0)
    label = torch.full((b_size,), real_label, dtype=torch.float, device=device)
    output = netD(real_cpu).view(-1)
    errD_real = criterion(output, label)
    errD_real.backward()
    D_x = output.mean().item()
    fake = netG(noise())
    label.fill_(fake_label)
    output = netD(fake.detach()).view(-1)
    errD_fake = criterion(output, label)
    errD_fake.backward()
    D_G_z1 = output.mean().item()
    errD = errD_real + errD_fake
    optimizerD.step()
    netG.zero_grad()
    label.fill_(real_label)
    output = netD(fake).view(-1)
    errG = criterion(output, label)
    errG.backward()
    D_G_z2 = output.mean().item()
    optimizerG.step()
    print("losses", errD.item(), errG.item(), D_x, D_G_z1, D_G_z2)
with torch.no_grad():
    fake = netG(fixed_noise).detach().cpu()
print("images", fake.mean().item(), fake.std().item(), fake.min().item(), fake.max().item())
