"""AdamW."""

from .adam import Adam

__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov & Hutter, 2019).

    cautious_weight_decay, which is Kiln's own, shrinks only what the step moves toward 0 (Chen et
    al., 2025).
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        *,
        maximize=False,
        foreach=None,
        capturable=False,
        differentiable=False,
        fused=None,
        cautious_weight_decay=False,
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
        if cautious_weight_decay:
            self.defaults["cautious_weight_decay"] = True
            for group in self.param_groups:
                group.setdefault("cautious_weight_decay", True)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True  # also after the state of an Adam
