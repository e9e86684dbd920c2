"""Variational autoencoder (Kingma and Welling, 2014), with the keys of PyTorch's example."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln
from kiln import nn
from kiln.nn import functional as F

from ._vision import positive

if TYPE_CHECKING:
    from .._C import Tensor


class VAE(nn.Module):
    """x [N, ..] with input_dim numbers each, from 0 to 1 -> (x again [N, input_dim], mu and logvar
    [N, latent_dim]). In eval mode the code is mu.

    >>> again, mu, logvar = kiln.models.VAE(8, 4, 2)(kiln.zeros(3, 8))
    >>> again.shape, mu.shape
    (kiln.Size([3, 8]), kiln.Size([3, 2]))
    """

    def __init__(self, input_dim: int = 784, hidden_dim: int = 400, latent_dim: int = 20) -> None:
        super().__init__()
        positive("VAE", input_dim=input_dim, hidden_dim=hidden_dim, latent_dim=latent_dim)
        self.input_dim = input_dim
        self.latent_dim = latent_dim
        self.fc1 = nn.Linear(input_dim, hidden_dim)
        self.fc21 = nn.Linear(hidden_dim, latent_dim)
        self.fc22 = nn.Linear(hidden_dim, latent_dim)
        self.fc3 = nn.Linear(latent_dim, hidden_dim)
        self.fc4 = nn.Linear(hidden_dim, input_dim)

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(mu, logvar) of the codes of x."""
        hidden = self.fc1(x).relu()
        return self.fc21(hidden), self.fc22(hidden)

    def reparameterize(self, mu: Tensor, logvar: Tensor) -> Tensor:
        """A random code: mu + e^(logvar / 2) times normal numbers."""
        return mu + kiln.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu

    def decode(self, z: Tensor) -> Tensor:
        """What codes stand for: [N, input_dim], from 0 to 1."""
        return self.fc4(self.fc3(z).relu()).sigmoid()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mu, logvar = self.encode(x.reshape(-1, self.input_dim))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar

    def sample(self, n: int) -> Tensor:
        """n new ones, [n, input_dim]."""
        weight = self.fc3.weight
        with kiln.no_grad():
            return self.decode(
                kiln.randn(n, self.latent_dim, dtype=weight.dtype, device=weight.device)
            )


def vae_loss(
    reconstruction: Tensor, x: Tensor, mu: Tensor, logvar: Tensor, beta: float = 1.0
) -> Tensor:
    """What the reconstruction lacks in bits of x, and beta times how far the codes are from a
    standard normal distribution; summed over the batch.

    >>> x, zero = kiln.tensor([[0.5]]), kiln.zeros(1, 1)
    >>> kiln.models.vae_loss(x, x, zero, zero).exp().round()
    tensor(2.)
    """
    error = F.binary_cross_entropy(reconstruction, x.reshape(reconstruction.shape), reduction="sum")
    return error - 0.5 * beta * (1 + logvar - mu.pow(2) - logvar.exp()).sum()
