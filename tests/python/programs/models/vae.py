"""A convolutional VAE: random codes, a weight of the divergence that grows, and an image grid."""

import numpy as np
import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(8)


class Reshape(nn.Module):
    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        return x.view(x.size(0), *self.shape)


class VAE(nn.Module):
    def __init__(self, latent_dim: int = 4) -> None:
        super(VAE, self).__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1),
            nn.ELU(),
            nn.Conv2d(8, 12, 3, stride=2, padding=1),
            nn.PReLU(12),
            nn.Flatten(),
        )
        self.fc_mu = nn.Linear(12 * 9, latent_dim)
        self.fc_var = nn.Linear(12 * 9, latent_dim)
        self.decoder = nn.Sequential(
            nn.Linear(latent_dim, 12 * 9),
            Reshape(12, 3, 3),
            nn.Upsample(scale_factor=2, mode="nearest"),
            nn.Conv2d(12, 16, 3, padding=1),
            nn.Softplus(beta=2),
            nn.PixelShuffle(2),
            nn.Conv2d(4, 1, 3, padding=1),
        )

    def reparameterize(self, mu: Tensor, logvar: Tensor) -> Tensor:
        std = torch.exp(0.5 * logvar)
        eps = torch.from_numpy(rng.normal(size=tuple(std.shape)).astype(np.float32))
        return mu + eps * std

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = self.encoder(x)
        mu, logvar = self.fc_mu(h), self.fc_var(h)
        z = self.reparameterize(mu, logvar)
        return torch.sigmoid(self.decoder(z)), mu, logvar


def loss_function(
    recon_x: Tensor, x: Tensor, mu: Tensor, logvar: Tensor, kld_weight: float
) -> tuple[Tensor, Tensor]:
    BCE = F.binary_cross_entropy(recon_x.view(-1, 144), x.view(-1, 144), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (BCE + kld_weight * KLD) / x.size(0), KLD


centres = rng.uniform(2, 10, (80, 2))
y, x = np.mgrid[:12, :12]
blobs = np.exp(-((y - centres[:, :1, None]) ** 2 + (x - centres[:, 1:, None]) ** 2) / 6)
dataset = TensorDataset(torch.from_numpy(blobs.astype(np.float32))[:, None])
loader = DataLoader(dataset, batch_size=16)
model = VAE()
for name, p in model.named_parameters():
    if "3.weight" in name and p.dim() == 1:
        continue  # of PReLU
    p.data.copy_(torch.from_numpy(rng.normal(0, 0.1, tuple(p.shape))))
optimizer = optim.Adam(model.parameters(), lr=3e-3)
step = 0
for epoch in range(1, 5):
    model.train()
    train_loss = 0.0
    for batch_idx, (data,) in enumerate(loader):
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss, kld = loss_function(recon_batch, data, mu, logvar, min(1.0, step / 10))
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        step += 1
        print("loss", loss.item(), kld.item())
    print("epoch", train_loss / len(loader))
with torch.no_grad():
    sample = torch.linspace(-1, 1, 16).reshape(4, 4)
    grid = (
        torch.sigmoid(model.decoder(sample)).view(2, 2, 12, 12).permute(0, 2, 1, 3).reshape(24, 24)
    )
    print("grid", *grid[::5, ::5].flatten().tolist())
