"""Keywords of PyTorch and Keras: keyword -> what is written here.

``axis``: a keyword that takes the same value. ``last_batch="discard"``: a keyword with its value. ``# text``: a remark.
A keyword with several entries has several meanings; the first applies whose keyword the called function knows and, for
``(owners, entry)``, whose owner is the called class or operator.
"""

from __future__ import annotations

Entry = str | tuple[str, str]  # entry, or (names of owners separated by spaces, entry)

_LATER = "# leave it out: the first batch tells the size"
_NO_EFFECT = "# leave it out: it has no equivalent and needs none"
_PADDING = "# leave it out: padding is always with zeros (mx.nd.pad has other modes)"
_CONVOLUTIONS = "Conv1D Conv2D Conv3D"
_LR = '# give it in the dict of the optimizer: gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})'
_LAYERS = "Dense Conv1D Conv2D Conv3D Embedding LSTM GRU RNN BatchNorm Activation Flatten Dropout"
_DEVICE = "# move the parameters with net.initialize(ctx=mx.cpu()), or later with net.reset_ctx(mx.cpu())"
_CTX = "# write ctx=mx.cpu() in place of device=..."
_GRAD = "# call x.attach_grad() on the new array"
_REDUCTION = "# leave it out: a loss has one value per sample; call .mean() or .sum() on it"
_SEQUENCES = "LSTM GRU RNN"

KEYWORD_NAMES: dict[str, tuple[Entry, ...]] = {
    # axes and shapes
    "dim": ("axis",),
    "dims": ("axis", "axes"),
    "dim0": ("dim1",),
    "axis": ("dim", "axes"),
    "keepdim": ("keepdims",),
    "keep_dims": ("keepdims",),
    "min": ("a_min",),
    "max": ("a_max",),
    "size": ("shape",),
    "sizes": ("shape",),
    "repeat": ("repeats",),
    "num_splits": ("num_outputs",),
    "chunks": ("num_outputs",),
    "num_classes": ("depth", "classes"),
    "n": ("N",),
    "m": ("M",),
    "descending": (("sort argsort topk", "is_ascend=False"),),
    "largest": (("topk", "is_ascend=False"),),
    # devices, dtypes, gradients
    "device": ("ctx", ("Trainer", "# initialize the parameters on the device: net.initialize(ctx=mx.cpu())"),
               (_LAYERS, _DEVICE), ("DataLoader", "pin_device_id"), ("_zeros _ones _eye", _CTX)),
    "context": ("ctx",),
    "requires_grad": ("grad_req", ("_zeros _ones _eye array empty full arange linspace", _GRAD)),
    "grad_tensors": ("head_grads",),
    "grad_outputs": ("head_grads",),
    "gradient": ("head_grads",),
    "inputs": ("variables",),
    "create_graph": (("backward", "# for second gradients: autograd.grad(y, [x], create_graph=True) inside record()"),),
    # files
    "f": ("filename",),
    "path": ("filename",),
    "filepath": ("filename",),
    "map_location": ("ctx",),
    "strict": (("load_parameters", "allow_missing=True, ignore_extra=True"),),
    "skip_mismatch": (("load_parameters", "ignore_extra"),),
    # layers
    "in_features": ("in_units",),
    "out_features": ("units", "num_hidden"),
    "output_dim": (("Dense", "units"),),
    "input_dim": ("in_units",),
    "input_shape": (("Dense", "# give the size of one row: in_units=3; or leave it out: the first batch tells it"),
                    (_CONVOLUTIONS, "# give the number of channels: in_channels=3; or leave it out: "
                     "the first batch tells it"),
                    (_LAYERS, _LATER)),
    "input_size": ("in_units",),
    "num_units": ("units", "hidden_size"),
    "units": ("hidden_size", "channels", "num_hidden"),
    "bias": ("use_bias", (_SEQUENCES, "# leave it out: the layer always has biases")),
    "out_channels": ("channels", "num_filter"),
    "filters": ("channels", "num_filter"),
    "num_filter": ("channels",),
    "num_filters": ("channels",),
    "in_planes": ("in_channels",),
    "kernel": ("kernel_size", "pool_size"),
    "kernel_size": ("pool_size", "kernel"),
    "stride": ("strides",),
    "strides": ("stride",),
    "padding": ("pad",),
    "pad": ("padding",),
    "dilation": ("dilate",),
    "dilate": ("dilation",),
    "dilation_rate": ("dilation", "dilate"),
    "groups": ("num_group",),
    "num_group": ("groups",),
    "padding_mode": (("Conv1D Conv2D Conv3D", _PADDING),),
    "data_format": ("layout",),
    "channels_last": ("layout",),
    "p": ("rate", ("norm", "ord")),
    "rate": ("p",),
    "drop_rate": ("rate",),
    "inplace": ((f"{_LAYERS} LeakyReLU ELU SELU", "# leave it out: operators choose their memory themselves"),),
    "num_embeddings": ("input_dim",),
    "embedding_dim": ("output_dim",),
    "padding_idx": (("Embedding", "# leave it out: set the row to 0 after net.initialize()"),),
    "num_features": ("in_channels",),
    "normalized_shape": ("in_channels",),
    "num_channels": ("in_channels", "channels"),
    "eps": ("epsilon",),
    "epsilon": ("eps",),
    "affine": (("BatchNorm InstanceNorm LayerNorm GroupNorm", "center=False, scale=False"),),
    "elementwise_affine": (("LayerNorm", "center=False, scale=False"),),
    "track_running_stats": ("use_global_stats",),
    "negative_slope": ("alpha", "slope"),
    "kernel_initializer": ("weight_initializer", "i2h_weight_initializer"),
    "embeddings_initializer": ("weight_initializer",),
    "recurrent_initializer": ("h2h_weight_initializer",),
    "recurrent_dropout": ("dropout",),
    "kernel_regularizer": ((_LAYERS, '# give the weight decay to the trainer: {"wd": 1e-4}'),),
    "name": ("prefix",),
    "approximate": (("GELU", "# leave it out: the exact function is computed"),),
    # recurrent layers
    "batch_first": (("LSTM GRU RNN", 'layout="NTC"'),),
    "num_hidden": ("hidden_size", "units"),
    "nonlinearity": (("RNN", "activation"),),
    "return_sequences": ((_SEQUENCES, "# leave it out: the output has all steps, out[-1] is the last (TNC)"),),
    "return_state": ((_SEQUENCES, "# leave it out: out, states = layer(x, layer.begin_state(batch_size))"),),
    "go_backwards": ((_SEQUENCES, "bidirectional"),),
    # losses
    "reduction": (("SoftmaxCrossEntropyLoss L1Loss L2Loss HuberLoss KLDivLoss "
                   "SigmoidBinaryCrossEntropyLoss CTCLoss HingeLoss TripletLoss", _REDUCTION),),
    "size_average": (("SoftmaxCrossEntropyLoss L1Loss L2Loss HuberLoss KLDivLoss "
                      "SigmoidBinaryCrossEntropyLoss CTCLoss HingeLoss TripletLoss", _REDUCTION),),
    "from_logits": (("SigmoidBinaryCrossEntropyLoss", "from_sigmoid=False"),),
    "ignore_index": (("SoftmaxCrossEntropyLoss",
                      "# pass 0 for samples to ignore: loss_fn(pred, label, sample_weight)"),),
    "pos_weight": (("SigmoidBinaryCrossEntropyLoss",
                    "# give it to the call: loss_fn(pred, label, None, pos_weight)"),),
    "label_smoothing": (("SoftmaxCrossEntropyLoss",
                         "# smooth the labels: SoftmaxCrossEntropyLoss(sparse_label=False) takes one row per sample"),),
    "delta": (("HuberLoss", "rho"),),
    "beta": (("HuberLoss", "rho"),),
    # optimizers, schedules
    "lr": ("learning_rate", "base_lr", ("Trainer", _LR)),
    "learning_rate": ("base_lr", ("Trainer", 'optimizer_params={"learning_rate": 0.1}')),
    "weight_decay": ("wd", ("Trainer", 'optimizer_params={"wd": 1e-4}')),
    "decay": ("wd",),
    "betas": (("Adam AdamW Adamax Nadam LAMB", "beta1=0.9, beta2=0.999"),),
    "beta_1": ("beta1",),
    "beta_2": ("beta2",),
    "alpha": (("RMSProp", "gamma1"),),
    "rho": (("RMSProp", "gamma1"),),
    "nesterov": (("SGD", '# choose the optimizer "nag"'),),
    "amsgrad": (("Adam AdamW", _NO_EFFECT),),
    "clipnorm": (("Adam SGD RMSProp", "# call gluon.utils.clip_global_norm(gradients, 1.0) before the step"),),
    "clipvalue": ("clip_gradient",),
    "params": (("SGD Adam AdamW RMSProp NAG", "# pass them to gluon.Trainer(net.collect_params(), optimizer)"),),
    "step_size": ("step",),
    "milestones": ("step",),
    "gamma": ("factor",),
    "T_max": ("max_update",),
    "total_iters": ("max_update",),
    "eta_min": ("final_lr",),
    "power": ("pwr",),
    "optimizer_parameters": ("optimizer_params",),
    "momentum": (("Trainer", 'optimizer_params={"momentum": 0.9}'),),
    "parameters": (("Trainer", "params"),),
    # data
    "download": (("MNIST FashionMNIST CIFAR10 CIFAR100", "# leave it out: missing files are downloaded"),),
    "collate_fn": ("batchify_fn",),
    "drop_last": (("DataLoader BatchSampler", 'last_batch="discard"'),),
    "drop_remainder": (("DataLoader", 'last_batch="discard"'),),
    "workers": ("num_workers",),
    "prefetch_factor": ("prefetch",),
    "persistent_workers": (("DataLoader", "# leave it out: the workers are kept between epochs"),),
    "pin_memory_device": ("pin_device_id",),
    "worker_init_fn": (("DataLoader", "# leave it out: each batch has its own seed, whatever worker makes it"),),
    "generator": (("DataLoader", "# call mx.random.seed(0) and numpy.random.seed(0) before the loop"),),
    "multiprocessing_context": (("DataLoader", "thread_pool"),),
    "batch": ("batch_size",),
    "bs": ("batch_size",),
    # parameters, initializers, random numbers
    "std": ("sigma", "scale"),
    "stddev": ("sigma", "scale", "std"),
    "mean": ("loc",),
    "gain": ("scale", "magnitude"),
    "val": ("value",),
    "trainable": (("Parameter", "differentiable"),
                  (_LAYERS, '# call layer.collect_params().setattr("grad_req", "null")')),
    "initializer": ("init",),
    "minval": ("low",),
    "maxval": ("high",),
    "lower": ("low",),
    "upper": ("high",),
    # metrics
    "k": ("top_k",),
}  # fmt: skip
