"""Networks of the libraries built on PyTorch, for bench/exported.py: detectors, diffusion, graphs, speech, medicine, images, series.

Each library has a function from the name of a network to the network, its inputs and, where an axis has any length other than the
batch's, the axes; NAMES lists what each makes. A library that is not installed, or a network it no longer has, is an export that failed.
"""
import importlib
import inspect

# ---- ultralytics: detectors and their relatives, prepared as its own export does

ULTRALYTICS = """yolov3-tiny yolov5n yolov6n yolov8n yolov8n-seg yolov8n-pose yolov8n-obb yolov8n-cls yolov8n-ghost yolov8n-p6 yolov9t yolov9c-seg yolov10n
yolo11n yolo11n-seg yolo11n-pose yolo12n yolo12n-cls yolo26n yolo26n-seg yolo26n-pose yolo26n-depth yolo26n-sem rtdetr-l rtdetr-resnet50 yolov8n-rtdetr""".split()


def ultralytics_network(name):
    import torch
    import ultralytics
    made = ultralytics.RTDETR if "rtdetr" in name and not name.startswith("yolo") else ultralytics.YOLO
    network = made(name + ".yaml").model.float().eval().fuse()
    for part in network.modules():
        if hasattr(part, "export") and isinstance(part.export, bool):
            part.export, part.dynamic, part.format = True, False, "onnx"
    side = 224 if "cls" in name else 320
    return network, {"images": torch.rand(1, 3, side, side)}


# ---- diffusers: denoisers, autoencoders and controls of the published pipelines, made small

SMALL_UNET = {"sample_size": 32, "block_out_channels": (64, 128, 256, 256), "cross_attention_dim": 256}
TEXT = ("encoder_hidden_states", (1, 77, 256))
STEP = ("timestep", "step")


def latent(channels=4, side=32):
    return ("sample", (1, channels, side, side))


DIFFUSERS = {
    "UNet2DConditionModel": (SMALL_UNET, [latent(), STEP, TEXT]),
    "UNet2DConditionModel_xl": ({"sample_size": 32, "block_out_channels": (64, 128, 256), "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"), "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
                                 "transformer_layers_per_block": (1, 2, 4), "attention_head_dim": (2, 4, 8), "use_linear_projection": True, "cross_attention_dim": 256}, [latent(), STEP, TEXT]),
    "UNet2DModel": ({"sample_size": 64, "block_out_channels": (64, 128, 256, 256)}, [latent(3, 64), STEP]),
    "UNet1DModel": ({"sample_size": 4096, "in_channels": 2, "out_channels": 2, "extra_in_channels": 16}, [("sample", (1, 2, 4096)), STEP]),
    "UNet3DConditionModel": ({**SMALL_UNET, "attention_head_dim": 32}, [("sample", (1, 4, 4, 16, 16)), STEP, TEXT]),
    "AutoencoderKL": ({"block_out_channels": (32, 64, 128, 128), "down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4, "layers_per_block": 2}, [latent(3, 128)]),
    "AutoencoderTiny": ({}, [latent(3, 128)]),
    "VQModel": ({"block_out_channels": (64, 128), "down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}, [latent(3, 64)]),
    "AutoencoderDC": ({"encoder_block_out_channels": (32, 64, 128, 128), "decoder_block_out_channels": (32, 64, 128, 128), "encoder_layers_per_block": (1, 1, 1, 1), "decoder_layers_per_block": (1, 1, 1, 1), "encoder_block_types": ("ResBlock", "ResBlock", "EfficientViTBlock", "EfficientViTBlock"),
                       "decoder_block_types": ("ResBlock", "ResBlock", "EfficientViTBlock", "EfficientViTBlock"), "encoder_qkv_multiscales": ((), (), (5,), (5,)), "decoder_qkv_multiscales": ((), (), (5,), (5,)), "decoder_norm_types": "rms_norm", "decoder_act_fns": "silu"}, [latent(3, 64)]),
    "AutoencoderOobleck": ({"encoder_hidden_size": 32, "decoder_channels": 32, "channel_multiples": [1, 2, 4]}, [("sample", (1, 2, 8192))]),
    "AutoencoderKLWan": ({"base_dim": 32, "dim_mult": [1, 2, 2, 2], "num_res_blocks": 1}, [("sample", (1, 3, 5, 64, 64))]),
    "AutoencoderKLCogVideoX": ({"block_out_channels": (32, 64, 64, 64), "layers_per_block": 1}, [("sample", (1, 3, 5, 64, 64))]),
    "ControlNetModel": ({"block_out_channels": (64, 128, 256, 256), "cross_attention_dim": 256}, [latent(), STEP, TEXT, ("controlnet_cond", (1, 3, 256, 256))]),
    "T2IAdapter": ({"in_channels": 3, "channels": [64, 128, 256, 256], "num_res_blocks": 2}, [("x", (1, 3, 256, 256))]),
    "DiTTransformer2DModel": ({"num_attention_heads": 6, "attention_head_dim": 64, "num_layers": 4, "sample_size": 32, "num_embeds_ada_norm": 1000}, [("hidden_states", (1, 4, 32, 32)), STEP, ("class_labels", "class")]),
    "PixArtTransformer2DModel": ({"num_attention_heads": 6, "attention_head_dim": 64, "num_layers": 4, "sample_size": 32, "cross_attention_dim": 384, "caption_channels": 256, "use_additional_conditions": False}, [("hidden_states", (1, 4, 32, 32)), TEXT, STEP]),
    "SD3Transformer2DModel": ({"sample_size": 32, "num_layers": 4, "attention_head_dim": 64, "num_attention_heads": 6, "caption_projection_dim": 384, "joint_attention_dim": 256, "pooled_projection_dim": 256, "pos_embed_max_size": 64}, [("hidden_states", (1, 16, 32, 32)), TEXT, ("pooled_projections", (1, 256)), STEP]),
    "FluxTransformer2DModel": ({"num_layers": 2, "num_single_layers": 4, "attention_head_dim": 64, "num_attention_heads": 6, "joint_attention_dim": 256, "pooled_projection_dim": 256, "axes_dims_rope": (16, 24, 24)}, [("hidden_states", (1, 256, 64)), TEXT, ("pooled_projections", (1, 256)), ("timestep", (1,)), ("img_ids", (256, 3)), ("txt_ids", (77, 3)), ]),
    "SanaTransformer2DModel": ({"num_attention_heads": 12, "attention_head_dim": 32, "num_layers": 4, "num_cross_attention_heads": 6, "cross_attention_head_dim": 64, "cross_attention_dim": 384, "caption_channels": 256, "sample_size": 16, "in_channels": 32, "out_channels": 32}, [("hidden_states", (1, 32, 16, 16)), TEXT, STEP]),
    "AuraFlowTransformer2DModel": ({"sample_size": 32, "num_mmdit_layers": 2, "num_single_dit_layers": 3, "attention_head_dim": 64, "num_attention_heads": 6, "joint_attention_dim": 256, "caption_projection_dim": 384, "pos_embed_max_size": 256}, [("hidden_states", (1, 4, 32, 32)), TEXT, ("timestep", (1,))]),
    "CogView3PlusTransformer2DModel": ({"num_layers": 4, "attention_head_dim": 64, "num_attention_heads": 6, "text_embed_dim": 256, "time_embed_dim": 256, "condition_dim": 128, "pos_embed_max_size": 64, "sample_size": 64}, [("hidden_states", (1, 16, 32, 32)), TEXT, STEP, ("original_size", (1, 2)), ("target_size", (1, 2)), ("crop_coords", (1, 2))]),
    "Lumina2Transformer2DModel": ({"hidden_size": 384, "num_layers": 4, "num_refiner_layers": 1, "num_attention_heads": 6, "num_kv_heads": 3, "sample_size": 32, "axes_dim_rope": (16, 24, 24), "cap_feat_dim": 256}, [("hidden_states", (1, 16, 32, 32)), ("timestep", (1,)), TEXT, ("encoder_attention_mask", "mask")]),
    "LTXVideoTransformer3DModel": ({"num_layers": 4, "num_attention_heads": 6, "attention_head_dim": 64, "cross_attention_dim": 384, "caption_channels": 256, "in_channels": 64, "out_channels": 64}, [("hidden_states", (1, 256, 64)), TEXT, ("timestep", (1,)), ("encoder_attention_mask", "mask"), ("num_frames", 4), ("height", 8), ("width", 8)]),
    "WanTransformer3DModel": ({"num_layers": 4, "num_attention_heads": 4, "attention_head_dim": 96, "ffn_dim": 1024, "text_dim": 256, "freq_dim": 128}, [("hidden_states", (1, 16, 4, 16, 16)), STEP, TEXT]),
    "CogVideoXTransformer3DModel": ({"num_attention_heads": 6, "attention_head_dim": 64, "num_layers": 4, "text_embed_dim": 256, "max_text_seq_length": 77, "sample_width": 16, "sample_height": 16, "sample_frames": 13}, [("hidden_states", (1, 4, 16, 16, 16)), TEXT, STEP]),
    "HunyuanVideoTransformer3DModel": ({"num_attention_heads": 6, "attention_head_dim": 64, "num_layers": 2, "num_single_layers": 2, "num_refiner_layers": 1, "text_embed_dim": 256, "pooled_projection_dim": 256, "rope_axes_dim": (16, 24, 24), "guidance_embeds": False}, [("hidden_states", (1, 16, 4, 16, 16)), STEP, TEXT, ("encoder_attention_mask", "mask"), ("pooled_projections", (1, 256))]),
    "QwenImageTransformer2DModel": ({"num_layers": 3, "attention_head_dim": 64, "num_attention_heads": 6, "joint_attention_dim": 256, "axes_dims_rope": (16, 24, 24)}, [("hidden_states", (1, 256, 64)), TEXT, ("encoder_hidden_states_mask", "mask"), ("timestep", (1,)), ("img_shapes", [(1, 16, 16)]), ("txt_seq_lens", [77])]),
}


def diffusers_network(name):
    import diffusers
    import torch
    config, listed = DIFFUSERS[name]
    network = getattr(diffusers, name.split("_")[0])(**config)
    inputs, fixed = {}, {}
    for key, what in listed:
        if what in ("step", "class"):
            inputs[key] = torch.tensor([7])
        elif what == "mask":
            inputs[key] = torch.ones(1, 77, dtype=torch.bool if key != "encoder_attention_mask" or "Lumina" in name else torch.int64)
        elif isinstance(what, tuple):
            inputs[key] = torch.randn(*what) if "ids" not in key else torch.arange(what[0] * what[1]).reshape(what).float() % 16
        else:
            fixed[key] = what

    class Denoiser(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, *values):
            return self.network(**dict(zip(inputs, values)), **fixed, **({"return_dict": False} if "return_dict" in inspect.signature(network.forward).parameters else {}))

    return Denoiser(), inputs


# ---- torch_geometric: graph networks; nodes and edges of any number

GRAPH_MODELS = "GCN GAT GIN GraphSAGE PNA EdgeCNN GraphUNet AttentiveFP".split()
GRAPH_CONVOLUTIONS = """AGNNConv APPNP ARMAConv CGConv ChebConv ClusterGCNConv EGConv EdgeConv FAConv FeaStConv FiLMConv GATConv GATv2Conv GCN2Conv GENConv GMMConv GatedGraphConv
GeneralConv GraphConv LEConv LGConv MFConv MixHopConv NNConv PDNConv PointNetConv PointTransformerConv RGATConv RGCNConv ResGatedGraphConv SGConv SSGConv SuperGATConv TAGConv TransformerConv""".split()


def torch_geometric_network(name):
    import torch
    import torch_geometric.nn as nn
    width, nodes, edges = 64, 500, 3000
    x, edge_index = torch.randn(nodes, width), torch.randint(0, nodes, (2, edges))
    inputs = {"x": x, "edge_index": edge_index}
    more = {
        "AttentiveFP": {"edge_attr": torch.randn(edges, 8), "batch": torch.arange(nodes) // 25}, "CGConv": {"edge_attr": torch.randn(edges, 8)}, "GMMConv": {"edge_attr": torch.rand(edges, 2)}, "NNConv": {"edge_attr": torch.randn(edges, 8)}, "PDNConv": {"edge_attr": torch.rand(edges, 8)},
        "RGATConv": {"edge_type": torch.randint(0, 4, (edges,))}, "RGCNConv": {"edge_type": torch.randint(0, 4, (edges,))}, "PointNetConv": {"pos": torch.rand(nodes, 3)}, "PointTransformerConv": {"pos": torch.rand(nodes, 3)},
    }.get(name, {})
    inputs |= more
    mlp = lambda i, o: torch.nn.Sequential(torch.nn.Linear(i, 64), torch.nn.ReLU(), torch.nn.Linear(64, o))
    degree = torch.bincount(torch.bincount(edge_index[1], minlength=nodes), minlength=20)
    made = {
        "PNA": lambda: nn.PNA(width, 64, 3, 16, aggregators=["mean", "min", "max", "std"], scalers=["identity", "amplification", "attenuation"], deg=degree), "GraphUNet": lambda: nn.GraphUNet(width, 64, 16, depth=2),
        "AttentiveFP": lambda: nn.AttentiveFP(width, 64, 8, edge_dim=8, num_layers=2, num_timesteps=2), "AGNNConv": lambda: nn.AGNNConv(), "APPNP": lambda: nn.APPNP(4, 0.1), "CGConv": lambda: nn.CGConv(width, dim=8), "ChebConv": lambda: nn.ChebConv(width, 64, K=3),
        "EdgeConv": lambda: nn.EdgeConv(mlp(2 * width, 64)), "FAConv": lambda: nn.FAConv(width), "FeaStConv": lambda: nn.FeaStConv(width, 64, heads=4), "GATConv": lambda: nn.GATConv(width, 16, heads=4), "GATv2Conv": lambda: nn.GATv2Conv(width, 16, heads=4), "GCN2Conv": None,
        "GMMConv": lambda: nn.GMMConv(width, 64, dim=2, kernel_size=4), "GatedGraphConv": lambda: nn.GatedGraphConv(64, 3), "LGConv": lambda: nn.LGConv(), "NNConv": lambda: nn.NNConv(width, 16, mlp(8, width * 16)), "PDNConv": lambda: nn.PDNConv(width, 64, edge_dim=8, hidden_channels=32),
        "PointNetConv": lambda: nn.PointNetConv(mlp(width + 3, 64), mlp(64, 64)), "RGATConv": lambda: nn.RGATConv(width, 64, num_relations=4), "RGCNConv": lambda: nn.RGCNConv(width, 64, num_relations=4), "SGConv": lambda: nn.SGConv(width, 64, K=2), "SSGConv": lambda: nn.SSGConv(width, 64, alpha=0.1, K=3),
        "SuperGATConv": lambda: nn.SuperGATConv(width, 16, heads=4), "TransformerConv": lambda: nn.TransformerConv(width, 16, heads=4), "MixHopConv": lambda: nn.MixHopConv(width, 32), "EGConv": lambda: nn.EGConv(width, 64, num_heads=8), "GCN": lambda: nn.GCN(width, 64, 3, 16), "GAT": lambda: nn.GAT(width, 64, 3, 16, heads=4),
        "GIN": lambda: nn.GIN(width, 64, 3, 16), "GraphSAGE": lambda: nn.GraphSAGE(width, 64, 3, 16), "EdgeCNN": lambda: nn.EdgeCNN(width, 64, 3, 16),
    }.get(name, lambda: getattr(nn, name)(width, 64))

    class Graph(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = made() if made else nn.GCN2Conv(width, alpha=0.1)
            self.starts = name in ("GCN2Conv", "FAConv")

        def forward(self, *values):
            given = dict(zip(inputs, values))
            if self.starts:
                return self.inner(given["x"], given["x"] * 0.5, given["edge_index"])
            if name == "PointNetConv":
                return self.inner(given["x"], given["pos"], given["edge_index"])
            return torch.relu(self.inner(**given))

    axes = {"x": {0: "nodes"}, "edge_index": {1: "edges"}} | {k: {0: "edges" if k.startswith("edge") else "nodes"} for k in more}
    return Graph(), inputs, axes


# ---- torchaudio: speech and separation

TORCHAUDIO = "Conformer Emformer ConvTasNet HDemucs Wav2Letter DeepSpeech WaveRNN wav2vec2_base squim_objective_base MelSpectrogram MFCC".split()


def torchaudio_network(name):
    import torch
    import torchaudio
    m = torchaudio.models
    length = ("lengths", torch.tensor([200]))
    made, inputs = {
        "Conformer": lambda: (m.Conformer(80, 4, 256, 4, 31), [("input", torch.randn(1, 200, 80)), length]),
        "Emformer": lambda: (m.Emformer(256, 4, 512, 4, segment_length=16, right_context_length=4), [("input", torch.randn(1, 204, 256)), length]),
        "ConvTasNet": lambda: (m.conv_tasnet_base(2), [("input", torch.randn(1, 1, 8000))]),
        "HDemucs": lambda: (m.HDemucs(["a", "b"], channels=16, depth=4), [("input", torch.randn(1, 2, 32768))]),
        "Wav2Letter": lambda: (m.Wav2Letter(40, "mfcc", 40), [("input", torch.randn(1, 40, 200))]),
        "DeepSpeech": lambda: (m.DeepSpeech(80, 512), [("input", torch.randn(1, 1, 200, 80))]),
        "WaveRNN": lambda: (m.WaveRNN([5, 5, 8], 256, 200, n_res_block=4, n_rnn=256, n_fc=256), [("waveform", torch.randn(1, 1, 1200)), ("spectrogram", torch.randn(1, 1, 128, 10))]),
        "wav2vec2_base": lambda: (m.wav2vec2_model(**WAV2VEC), [("waveform", torch.randn(1, 16000))]),
        "squim_objective_base": lambda: (m.squim_objective_base(), [("waveform", torch.randn(1, 16000))]),
        "MelSpectrogram": lambda: (torchaudio.transforms.MelSpectrogram(16000, n_fft=400, n_mels=80), [("waveform", torch.randn(1, 16000))]),
        "MFCC": lambda: (torchaudio.transforms.MFCC(16000, 40, melkwargs={"n_fft": 400, "n_mels": 80}), [("waveform", torch.randn(1, 16000))]),
    }[name]()
    return made, dict(inputs)


WAV2VEC = {"extractor_mode": "group_norm", "extractor_conv_layer_config": None, "extractor_conv_bias": False, "encoder_embed_dim": 384, "encoder_projection_dropout": 0.0, "encoder_pos_conv_kernel": 128, "encoder_pos_conv_groups": 16, "encoder_num_layers": 4, "encoder_num_heads": 6,
           "encoder_attention_dropout": 0.0, "encoder_ff_interm_features": 1536, "encoder_ff_interm_dropout": 0.0, "encoder_dropout": 0.0, "encoder_layer_norm_first": False, "encoder_layer_drop": 0.0, "aux_num_out": 32}

# ---- monai: medical images of two and three axes

PLANE, SPACE = (1, 1, 128, 128), (1, 1, 48, 48, 48)
STEPS = {"channels": (16, 32, 64, 128), "strides": (2, 2, 2)}
MONAI = {
    "AttentionUnet": ({"spatial_dims": 2, "in_channels": 1, "out_channels": 2, **STEPS}, PLANE), "AutoEncoder": ({"spatial_dims": 2, "in_channels": 1, "out_channels": 1, **STEPS}, PLANE), "AutoencoderKL": ({"spatial_dims": 2, "channels": (32, 64, 64), "attention_levels": (False, False, True), "num_res_blocks": 1}, PLANE),
    "BasicUNet": ({"spatial_dims": 3, "out_channels": 2}, SPACE), "BasicUNetPlusPlus": ({"spatial_dims": 2}, PLANE), "DenseNet121": ({"spatial_dims": 3, "in_channels": 1, "out_channels": 2}, SPACE), "DynUNet": ({"spatial_dims": 3, "in_channels": 1, "out_channels": 2, "kernel_size": [3, 3, 3], "strides": [1, 2, 2], "upsample_kernel_size": [2, 2]}, SPACE),
    "EfficientNetBN": ({"model_name": "efficientnet-b0", "spatial_dims": 2, "in_channels": 1, "pretrained": False}, PLANE), "FlexibleUNet": ({"in_channels": 1, "out_channels": 2, "backbone": "efficientnet-b0", "spatial_dims": 2}, PLANE), "HighResNet": ({"spatial_dims": 3}, (1, 1, 32, 32, 32)), "HoVerNet": ({}, (1, 3, 256, 256)),
    "MedNeXtS": ({"spatial_dims": 3, "in_channels": 1, "out_channels": 2}, (1, 1, 32, 32, 32)), "ResNet": ({"block": "basic", "layers": [1, 1, 1, 1], "block_inplanes": [32, 64, 128, 256], "n_input_channels": 1}, SPACE), "SEResNet50": ({"spatial_dims": 2, "in_channels": 1}, PLANE), "SegResNet": ({}, SPACE), "SegResNetDS": ({}, SPACE), "SegResNetVAE": ({"input_image_size": (48, 48, 48)}, SPACE),
    "SwinUNETR": ({"in_channels": 1, "out_channels": 2, "feature_size": 12}, (1, 1, 64, 64, 64)), "UNETR": ({"in_channels": 1, "out_channels": 2, "img_size": (48, 48, 48), "hidden_size": 192, "mlp_dim": 384, "num_heads": 6}, SPACE), "UNet": ({"spatial_dims": 3, "in_channels": 1, "out_channels": 2, "num_res_units": 2, **STEPS}, SPACE), "VNet": ({}, (1, 1, 32, 32, 32)),
    "VQVAE": ({"spatial_dims": 2, "in_channels": 1, "out_channels": 1, "channels": (64, 64), "num_res_channels": 32}, PLANE), "ViT": ({"in_channels": 1, "img_size": (48, 48, 48), "patch_size": (16, 16, 16), "hidden_size": 192, "mlp_dim": 384, "num_layers": 4, "num_heads": 6}, SPACE), "VoxelMorphUNet": ({"in_channels": 1}, (1, 1, 32, 32, 32)), "RegUNet": ({"spatial_dims": 2, "in_channels": 1, "num_channel_initial": 16, "depth": 3}, PLANE),
    "Quicknat": ({"num_channels": 1}, (1, 1, 128, 128)), "AHNet": ({"spatial_dims": 2, "psp_block_num": 0}, (1, 1, 128, 128)), "Discriminator": ({"in_shape": (1, 64, 64), **STEPS}, (1, 1, 64, 64)), "PatchDiscriminator": ({"spatial_dims": 2, "in_channels": 1, "channels": 32}, PLANE)
}


def monai_network(name):
    import monai.networks.nets
    import torch
    config, shape = MONAI[name]
    return getattr(monai.networks.nets, name)(**config), {"image": torch.rand(*shape)}


# ---- segmentation_models_pytorch: every decoder, encoders by turns

SEGMENTATION = [f"{d}-{e}" for d, e in zip("Unet UnetPlusPlus MAnet Linknet FPN PSPNet PAN DeepLabV3 DeepLabV3Plus UPerNet Segformer DPT Unet FPN DeepLabV3Plus Unet".split(),
                                           "resnet18 mobilenet_v2 efficientnet-b0 resnet18 mobilenet_v2 resnet18 resnet18 mobilenet_v2 resnet34 mit_b0 mit_b0 tu-vit_small_patch16_224.augreg_in21k mobileone_s0 timm-efficientnet-b0 xception vgg11_bn".split())]


def segmentation_models_pytorch_network(name):
    import segmentation_models_pytorch as smp
    import torch
    decoder, encoder = name.split("-", 1)
    return getattr(smp, decoder)(encoder_name=encoder, encoder_weights=None, classes=4), {"image": torch.rand(1, 3, 224, 224)}


# ---- vit_pytorch: variants of vision transformers, by the parameters that they have in common

VIT = {"image_size": 128, "patch_size": 16, "num_classes": 100, "dim": 256, "depth": 4, "heads": 4, "mlp_dim": 512, "cls_depth": 2, "seq_len": 256, "frames": 4, "frame_patch_size": 2, "image_patch_size": 16, "max_tokens_per_depth": (64, 32, 32, 16), "spatial_depth": 2, "temporal_depth": 2,
       "freq_patch_size": 8, "num_residual_streams": 2, "mlp_mult": 2, "sm_dim": 128, "lg_dim": 256, "ndim": 3, "input_shape": 32, "num_slots": 16}
VIT_OWN = {
    "cct": {"img_size": 128, "embedding_dim": 256, "n_conv_layers": 2, "kernel_size": 7, "stride": 2, "padding": 3, "pooling_kernel_size": 3, "pooling_stride": 2, "pooling_padding": 1, "num_layers": 4, "num_heads": 4, "mlp_ratio": 2.0, "num_classes": 100}, "max_vit": {"dim": 32, "depth": (1, 1, 1, 1), "window_size": 4, "num_classes": 100},
    "mobile_vit": {"image_size": (128, 128), "dims": [96, 120, 144], "channels": [16, 32, 48, 48, 64, 64, 80, 80, 96, 96, 384], "num_classes": 100}, "nest": {"image_size": 128, "patch_size": 4, "dim": 96, "heads": 3, "num_hierarchies": 3, "block_repeats": (2, 2, 4), "num_classes": 100},
    "scalable_vit": {"num_classes": 100, "dim": 64, "heads": (2, 4, 8, 16), "depth": (1, 1, 2, 1), "ssa_dim_key": (40, 40, 40, 32), "reduction_factor": (8, 4, 2, 1), "window_size": (64, 32, None, None)}, "sep_vit": {"num_classes": 100, "dim": 32, "dim_head": 32, "heads": (1, 2, 4, 8), "depth": (1, 1, 2, 1), "window_size": 4},
    "pit": {"image_size": 128, "patch_size": 16, "dim": 64, "num_classes": 100, "depth": (2, 2, 2), "heads": 4, "mlp_dim": 256}, "jumbo_vit": {}, "levit": {"image_size": 128, "num_classes": 100, "stages": 3, "dim": (128, 192, 256), "depth": 2, "heads": (4, 6, 8), "mlp_mult": 2}, "twins_svt": {"num_classes": 100, "s1_emb_dim": 32, "s2_emb_dim": 64, "s3_emb_dim": 128, "s4_emb_dim": 256, "s1_patch_size": 4},
    "look_vit": {"dim": 256, "image_size": 128, "num_classes": 100, "depth": 2},
}
VIT_NAMES = """ats_vit cait cct cross_vit crossformer cvt deepvit jumbo_vit jet_vit levit local_vit look_vit max_vit mobile_vit nest normalized_vit parallel_vit pit regionvit rvt scalable_vit sep_vit simple_flash_attn_vit simple_uvit simple_vit simple_vit_1d simple_vit_3d simple_vit_attn_residual simple_vit_orthog_residual_update
simple_vit_with_fft simple_vit_with_hyper_connections simple_vit_with_qk_norm simple_vit_with_register_tokens simple_vit_with_relative_proj_pos_bias simple_vit_with_sparse_gating simple_vit_with_value_residual t2t twins_svt vit vit_1d vit_3d vit_5 vit_detpool vit_for_small_dataset vit_nd vit_nd_rotary vit_with_patch_merger vivit xcit""".split()


def vit_pytorch_network(name):
    import torch
    module = importlib.import_module("vit_pytorch." + name)
    own = [c for c in vars(module).values() if inspect.isclass(c) and issubclass(c, torch.nn.Module) and c.__module__ == module.__name__]
    made = own[-1]
    needed = [p.name for p in inspect.signature(made.__init__).parameters.values() if p.default is p.empty and p.name != "self"]
    network = made(**(VIT_OWN.get(name) or {k: VIT[k] for k in needed}))
    size = 224 if name in ("crossformer", "regionvit", "cvt", "scalable_vit", "sep_vit", "twins_svt", "max_vit") else 256 if name == "scalable_vit" else 128
    image = torch.rand(1, 3, size, size)
    if name.endswith("_1d"):
        image = torch.rand(1, 3, 256)
    elif name.endswith("_3d") or name == "vivit":
        image = torch.rand(1, 3, 4, 128, 128)
    elif "_nd" in name:
        image = torch.rand(1, 3, 32, 32, 32)
    return network, {"image": image}


# ---- x_transformers: options of attention, by turns

X_TRANSFORMERS = {"plain": {}, "rotary": {"rotary_pos_emb": True}, "alibi": {"alibi_pos_bias": True}, "t5": {"rel_pos_bias": True}, "glu": {"ff_glu": True, "ff_swish": True}, "rmsnorm": {"use_rmsnorm": True}, "qk_norm": {"attn_qk_norm": True}, "one_kv": {"attn_one_kv_head": True}, "groups": {"attn_kv_heads": 2}, "talking": {"attn_pre_talking_heads": True, "attn_post_talking_heads": True},
                  "sandwich": {"sandwich_coef": 2}, "memory": {"attn_num_mem_kv": 16}, "macaron": {"macaron": True}, "gate": {"attn_gate_values": True}, "sparse_topk": {"attn_sparse_topk": 8}, "shift": {"shift_tokens": 1}, "residual_attn": {"residual_attn": True}, "softclamp": {"attn_softclamp_logits": True}, "relu_squared": {"ff_relu_squared": True}, "dynamic": {"dynamic_pos_bias": True}}


def x_transformers_network(name):
    import torch
    import x_transformers as x
    made = x.Decoder if name in ("rotary", "alibi", "groups", "shift", "glu") else x.Encoder
    network = x.TransformerWrapper(num_tokens=2000, max_seq_len=256, attn_layers=made(dim=256, depth=4, heads=4, **X_TRANSFORMERS[name]))
    return network, {"tokens": torch.randint(0, 2000, (1, 128))}, {"tokens": {0: "batch", 1: "length"}}


# ---- tsai: time series

TSAI = "FCN ResNet ResCNN InceptionTime InceptionTimePlus XceptionTime OmniScaleCNN TCN LSTM GRU RNN_FCN LSTM_FCN MLSTM_FCN GRU_FCN TST TSTPlus TSiTPlus gMLP mWDN XCM MLP PatchTST ConvTran TSPerceiver TSSequencerPlus TransformerModel MultiRocketPlus MiniRocketPlus HydraPlus XResNet1dPlus GRUAttention LSTMAttention TransformerLSTMPlus".split()


def tsai_network(name):
    import torch
    import tsai.models.all as tsai
    made = getattr(tsai, name)
    asked = inspect.signature(made).parameters
    length = {"seq_len": 96} if "seq_len" in asked else {}
    prediction = {"pred_dim": 24} if "pred_dim" in asked else {}
    return (made(7, 5, **length) if not prediction else made(7, 7, 96, 24)), {"series": torch.randn(1, 7, 96)}


# ---- spandrel: restoration and super-resolution

SPANDREL_NAMES = "ATD CRAFT Compact DAT DCTLSA DITN DRCT DRUNet DnCNN ESRGAN FBCNN FDAT FFTformer GRL HAT IPT KBNet LaMa MixDehazeNet MoESR MoSR NAFNet OmniSR PLKSR RCAN RGT RealCUGAN RetinexFormer SAFMN SCUNet SPAN SeemoRe SwiftSRGAN Swin2SR SwinIR Uformer".split()


def spandrel_network(name):
    import torch
    module = importlib.import_module("spandrel.architectures." + name)
    own = [c for c in vars(module).values() if inspect.isclass(c) and issubclass(c, torch.nn.Module)]
    made = own[-1]
    needed = {"SAFMN": {"dim": 36}, "SPAN": {"num_in_ch": 3, "num_out_ch": 3}, "DRUNet": {"in_nc": 4, "out_nc": 3}, "Uformer": {"img_size": 128}}.get(name, {})
    channels = {"DnCNN": 3, "DRUNet": 4, "LaMa": 4}.get(name, 3)
    network = made(**needed)
    for parameter in inspect.signature(made.__init__).parameters.values():
        if parameter.name in ("in_nc", "num_in_ch", "in_channels", "in_chans") and isinstance(parameter.default, int) and not needed:
            channels = parameter.default
    window = inspect.signature(made.__init__).parameters.get("window_size")
    side = 56 if window and window.default == 7 else 128 if name in ("Uformer", "LaMa", "FBCNN", "NAFNet", "RetinexFormer", "MixDehazeNet") else 64
    return network, {"image": torch.rand(1, channels, side, side)}


# ---- pytorchcv: the first network of each of its modules

def pytorchcv_names():
    try:
        from pytorchcv.model_provider import _models
    except ImportError:
        return []
    first = {}
    for name, made in _models.items():
        first.setdefault(made.__module__, name)
    return list(first.values())


def pytorchcv_network(name):
    import torch
    from pytorchcv.model_provider import get_model
    network = get_model(name, pretrained=False)
    size = getattr(network, "in_size", (224, 224))
    size = size if isinstance(size, (tuple, list)) else (size, size)
    if max(size) > 640:
        size = tuple(s // 2 // 32 * 32 for s in size)
    if name.startswith(("jasper", "quartznet")):
        return network, {"features": torch.randn(1, getattr(network, "in_channels", 64), 240), "lengths": torch.tensor([240])}
    return network, {"image": torch.rand(1, getattr(network, "in_channels", 3), *size)}


# ---- doctr, kornia: reading of text and matching of images

DOCTR = "db_resnet50 db_mobilenet_v3_large linknet_resnet18 fast_tiny crnn_vgg16_bn crnn_mobilenet_v3_small sar_resnet31 vitstr_small parseq viptr_tiny master magc_resnet31 mobilenet_v3_small_crop_orientation".split()


def doctr_network(name):
    import torch
    from doctr.models import classification, detection, recognition
    made = next(getattr(m, name) for m in (detection, recognition, classification) if hasattr(m, name))
    network = made(pretrained=False, **({"exportable": True} if not hasattr(classification, name) else {}))
    if hasattr(detection, name):
        return network, {"image": torch.rand(1, 3, 512, 512)}
    return network, {"image": torch.rand(1, 3, *((32, 128) if hasattr(recognition, name) else (256, 256)))}


KORNIA = "DISK DeDoDe HardNet HyNet KeyNet LoFTR SOSNet TFeat XFeatModel SOLD2_detector".split()


def kornia_network(name):
    import kornia.feature as kf
    import torch
    if name in ("HardNet", "HyNet", "SOSNet", "TFeat"):
        return getattr(kf, name)(pretrained=False), {"patches": torch.rand(64, 1, 32, 32)}
    made = {"LoFTR": lambda: kf.LoFTR(pretrained=None), "SOLD2_detector": lambda: kf.SOLD2_detector(pretrained=False)}.get(name, getattr(kf, name))
    network = made()
    if name == "LoFTR":
        class Match(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = network

            def forward(self, first, second):
                return self.inner.backbone(torch.cat([first, second]))
        return Match(), {"first": torch.rand(1, 1, 128, 128), "second": torch.rand(1, 1, 128, 128)}
    return network, {"image": torch.rand(1, 3 if name in ("DISK", "DeDoDe") else 1, 128, 128)}


# ---- attention in the forms of well-known implementations

def attention_names():
    try:
        import attention_forms
    except ImportError:
        return []
    return attention_forms.FORMS


def attention_network(name):
    import attention_forms
    return attention_forms.made(name)


NAMES = {
    "attention": attention_names, "ultralytics": lambda: ULTRALYTICS, "diffusers": lambda: DIFFUSERS, "torch_geometric": lambda: GRAPH_MODELS + GRAPH_CONVOLUTIONS, "torchaudio": lambda: TORCHAUDIO, "monai": lambda: MONAI, "segmentation_models_pytorch": lambda: SEGMENTATION, "vit_pytorch": lambda: VIT_NAMES,
    "x_transformers": lambda: X_TRANSFORMERS, "tsai": lambda: TSAI, "spandrel": lambda: SPANDREL_NAMES, "pytorchcv": pytorchcv_names, "doctr": lambda: DOCTR, "kornia": lambda: KORNIA,
}


def names():
    return [f"{library}.{n}" for library, listed in NAMES.items() for n in listed()]


def network(library, name):
    """The network, its inputs, and the axes of any length, or None where only the batch is."""
    import torch
    # torchaudio, which others import too, may have been built for another CUDA than torch: it checks that, and here it does not matter.
    torch.version.cuda = None
    made = globals()[library + "_network"](name)
    return made if len(made) == 3 else (*made, None)
