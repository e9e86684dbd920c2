"""__constants__ of the layers: the names of the attributes that are options, as PyTorch lists them.

Programs add to them in classes of their own, and read options by them.
"""

from __future__ import annotations

_TABLE = """
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d: output_size
    AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d: output_size return_indices
    AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout: p inplace
    AvgPool1d: kernel_size stride padding ceil_mode count_include_pad
    AvgPool2d AvgPool3d: kernel_size stride padding ceil_mode count_include_pad divisor_override
    BCELoss KLDivLoss L1Loss MSELoss MultiLabelMarginLoss MultiLabelSoftMarginLoss SmoothL1Loss
        SoftMarginLoss: reduction
    BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d
        LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyInstanceNorm1d LazyInstanceNorm2d
        LazyInstanceNorm3d: track_running_stats momentum eps num_features affine
    Bilinear: in1_features in2_features out_features
    CELU ELU: alpha inplace
    CTCLoss: blank reduction
    ChannelShuffle: groups
    CircularPad1d CircularPad2d CircularPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d
        ReplicationPad1d ReplicationPad2d ReplicationPad3d: padding
    ConstantPad1d ConstantPad2d ConstantPad3d ZeroPad1d ZeroPad2d ZeroPad3d: padding value
    Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d
        LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d: stride padding
        dilation groups padding_mode output_padding in_channels out_channels kernel_size
    CosineEmbeddingLoss HingeEmbeddingLoss MarginRankingLoss: margin reduction
    CosineSimilarity: dim eps
    CrossEntropyLoss: ignore_index reduction label_smoothing
    Embedding: num_embeddings embedding_dim padding_idx max_norm norm_type scale_grad_by_freq
        sparse
    EmbeddingBag: num_embeddings embedding_dim max_norm norm_type scale_grad_by_freq mode sparse
        include_last_offset padding_idx
    Flatten: start_dim end_dim
    Fold: output_size kernel_size dilation padding stride
    FractionalMaxPool2d FractionalMaxPool3d: kernel_size return_indices output_size output_ratio
    GELU: approximate
    GLU LogSoftmax Softmax Softmin: dim
    GRU LSTM RNN: mode input_size hidden_size num_layers bias batch_first dropout bidirectional
        proj_size
    GRUCell LSTMCell: input_size hidden_size bias
    GaussianNLLLoss: full eps reduction
    GroupNorm: num_groups num_channels eps affine
    Hardshrink Softshrink: lambd
    Hardsigmoid Hardswish Mish ReLU SELU SiLU: inplace
    Hardtanh ReLU6: min_val max_val inplace
    HuberLoss: reduction delta
    LPPool1d LPPool2d LPPool3d: norm_type kernel_size stride ceil_mode
    LayerNorm RMSNorm: normalized_shape eps elementwise_affine
    LazyLinear Linear: in_features out_features
    LeakyReLU: inplace negative_slope
    LinearCrossEntropyLoss: num_classes out_features reduction ignore_index label_smoothing
    LocalResponseNorm: size alpha beta k
    MaxPool1d MaxPool2d MaxPool3d: kernel_size stride padding dilation return_indices ceil_mode
    MultiMarginLoss: p margin reduction
    MultiheadAttention: batch_first
    NLLLoss: ignore_index reduction
    PReLU: num_parameters
    PairwiseDistance: norm eps keepdim
    PixelShuffle: upscale_factor
    PixelUnshuffle: downscale_factor
    PoissonNLLLoss: log_input full eps reduction
    RNNCell: input_size hidden_size bias nonlinearity
    RReLU: lower upper inplace
    Softplus: beta threshold
    Threshold: threshold value inplace
    TransformerDecoder TransformerEncoder: norm
    TransformerDecoderLayer TransformerEncoderLayer: norm_first
    TripletMarginLoss: margin p eps swap reduction
    TripletMarginWithDistanceLoss: margin swap reduction
    Unflatten: dim unflattened_size
    Unfold: kernel_size dilation padding stride
    Upsample UpsamplingBilinear2d UpsamplingNearest2d: size scale_factor mode align_corners name
        recompute_scale_factor
"""


def constants() -> dict[str, list[str]]:
    """The lists by the names of the classes."""
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for word in _TABLE.split():
        if word[0].isupper():
            # The names before a colon share what follows it.
            if names and names[-1].endswith(":"):
                names = []
            names.append(word)
        else:
            for name in names:
                found.setdefault(name.rstrip(":"), []).append(word)
    return found
