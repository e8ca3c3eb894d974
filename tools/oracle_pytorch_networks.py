"""Whole networks with random weights for tools/oracle_pytorch.py: (name, function that builds it).

Each function gives the arguments of export_network: model, args, and perhaps kwargs, dynamic
(shapes that vary) and second (arguments of another size).
"""
import torch
from torch import nn
from torch.export import Dim


def picture(model, size=64, batch=1, dynamic=False, channels=3):
    case = {"model": model, "args": (torch.randn(batch, channels, size, size),)}
    if dynamic:
        case["args"] = (torch.randn(2, channels, size, size),)
        case["dynamic"] = ({0: Dim("batch", min=1, max=64)},)
        case["second"] = (torch.randn(3, channels, size, size),)
    return case


def stir(module):
    """Random statistics and gains, so that nothing hides behind zeros and ones."""
    from torchvision.ops import FrozenBatchNorm2d
    norms = (nn.modules.batchnorm._BatchNorm, FrozenBatchNorm2d)
    for m in module.modules():
        if isinstance(m, norms) and getattr(m, "running_mean", None) is not None:
            m.running_mean.uniform_(-0.5, 0.5)
            m.running_var.uniform_(0.5, 2)
        if isinstance(m, norms + (nn.LayerNorm, nn.GroupNorm)) and m.weight is not None:
            m.weight.data.uniform_(0.5, 1.5)
            if m.bias is not None:
                m.bias.data.uniform_(-0.5, 0.5)
    return module


def torchvision_networks():
    """Every builder of classification, segmentation and video; detection comes as TorchScript (torchscript/vision.py)."""
    import torchvision.models as models
    from torchscript.cases import by_size
    sides = {"inception_v3": 96, "maxvit_t": 224, "swin": 96, "vit_h_14": 56, "vit_b_16": 64, "vit_b_32": 96, "vit_l_16": 64, "vit_l_32": 96}

    def classifier(name):
        options = {"weights": None}
        side = sides.get(name, sides["swin"] if name.startswith("swin") else 64)
        if name in ("googlenet", "inception_v3"):
            options["init_weights"] = False
        if name.startswith("vit"):
            options["image_size"] = side
        return {**picture(stir(models.get_model(name, **options)), side, dynamic=True), "kinds": ("export",)}

    def video(name):
        frames, side = (16, 224) if name == "s3d" or name.startswith("mvit") else (4, 64)  # some have but one size
        return {"model": stir(models.get_model(name, weights=None)), "args": (torch.randn(1, 3, frames, side, side),)}
    for name in by_size(models):
        yield "tv_" + name, lambda name=name: classifier(name)
    for name in by_size(models.segmentation):
        yield "tv_" + name, lambda name=name: {**picture(stir(models.get_model(name, weights=None, weights_backbone=None)), 64, dynamic=True), "kinds": ("export",)}
    for name in by_size(models.video):
        yield "tv_" + name, lambda name=name: video(name)
    for name in by_size(models.optical_flow):
        yield "tv_" + name, lambda name=name: {"model": Flow(stir(models.get_model(name, weights=None))), "args": (torch.rand(1, 3, 128, 136), torch.rand(1, 3, 128, 136))}


class Flow(nn.Module):
    """Optical flow with two steps of refinement; the last one is the result."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, a, b):
        return self.model(a, b, num_flow_updates=2)[-1]


def timm_networks():
    import timm
    for name in timm.list_models("test_*"):
        def build(name=name):
            model = timm.create_model(name, pretrained=False)
            config = model.pretrained_cfg
            return picture(model, config["input_size"][-1], dynamic="vit" in name or "resnet" in name)
        yield "timm_" + name, build


# A small one of each of timm's families.
TIMM_FAMILIES = """
    beit_base_patch16_224 eca_botnext26ts_256 mobileone_s0 cait_xxs24_224 coat_tiny convit_tiny convmixer_768_32 convnext_atto_rms cpubone_nano
    crossvit_tiny_240 csatv2 cs3darknet_focus_s cspnext_tiny davit_tiny deit_tiny_patch16_224 densenetblur121d dla46x_c dpn48b edgenext_xx_small
    efficientformer_l1 efficientformerv2_s0 efficientnet_b0 efficientvim_m1 efficientvit_b0 efficientvit_m0 eva02_tiny_patch14_224 fasternet_t0
    fastvit_mci0 focalnet_tiny_srf gcvit_xxtiny gemma4_vit_167m ghostnet_050 hardcorenas_b hgnetv2_b0 hiera_tiny_224 sam2_hiera_tiny hrnet_w18_small
    iformer_s inception_next_atto inception_resnet_v2 inception_v3 inception_v4 lcnetv2_small levit_128s lowformer_b0 mambaout_femto coatnet_pico_rw_224
    caformer_s18 gmixer_12_224 mobilenetv3_small_050 mobilenetv5_base mobilevit_xxs mvitv2_tiny naflexvit_base_patch16_parfac_gap nasnetalarge nest_tiny
    nextvit_small nf_regnet_b0 pit_xs_224 pnasnet5large pvt_v2_b0 qwen3_vit_88m rdnet_tiny regnety_002 repghostnet_050 repvit_m1 res2net50_26w_4s
    resnest14d resnet18 resnetv2_18 rexnet_100 selecsls42 legacy_seresnet18 sequencer2d_s shvit_s1 skresnet18 starnet_s050 swiftformer_xs
    swin_tiny_patch4_window7_224 swinv2_tiny_window8_256 swinv2_cr_tiny_224 tiny_vit_5m_224 tnt_s_legacy_patch16_224 tresnet_m twins_svt_small
    visformer_tiny vit_small_patch8_224 vit_tiny_r_s16_p8_224 vit_srelpos_small_patch16_224 samvit_base_patch16_224 vitamin_small_224 volo_d1_224
    ese_vovnet19b_slim_dw legacy_xception xception41p xcit_nano_12_p8_224
""".split()


def timm_families():
    import timm

    def build(name):
        model = timm.create_model(name, pretrained=False)
        return {**picture(stir(model), model.pretrained_cfg["input_size"][-1]), "kinds": ("export",)}
    for name in TIMM_FAMILIES:
        yield "family_" + name, lambda name=name: build(name)


def recurrent_networks():
    class Wrapped(nn.Module):
        def __init__(self, cell, states):
            super().__init__()
            self.cell, self.states = cell, states

        def forward(self, x, *states):
            return self.cell(x, states if len(states) == 2 else states[0] if states else None)
    for kind in ("LSTM", "GRU", "RNN"):
        for layers in (1, 2):
            for both in (False, True):
                for first in (False, True):
                    def build(kind=kind, layers=layers, both=both, first=first):
                        cell = getattr(nn, kind)(6, 5, layers, batch_first=first, bidirectional=both, bias=layers == 2 or first)
                        return {"model": cell, "args": (torch.randn(3, 4, 6),)}
                    yield "rnn_%s_%d%s%s" % (kind, layers, "_both" if both else "", "_first" if first else ""), build
    yield "rnn_relu", lambda: {"model": nn.RNN(6, 5, nonlinearity="relu"), "args": (torch.randn(3, 4, 6),)}
    yield "rnn_lstm_proj", lambda: {"model": nn.LSTM(6, 5, 2, proj_size=3, bidirectional=True), "args": (torch.randn(3, 4, 6),)}
    yield "rnn_lstm_unbatched", lambda: {"model": nn.LSTM(6, 5), "args": (torch.randn(3, 6),)}
    yield "rnn_lstm_state", lambda: {"model": Wrapped(nn.LSTM(6, 5), 2), "args": (torch.randn(3, 4, 6), torch.randn(1, 4, 5), torch.randn(1, 4, 5))}
    for kind in ("LSTMCell", "GRUCell", "RNNCell"):
        yield "rnn_" + kind, lambda kind=kind: {"model": getattr(nn, kind)(6, 5), "args": (torch.randn(4, 6),)}


def plain_networks():
    yield "nn_transformer", lambda: {"model": nn.Transformer(16, 2, 1, 1, 32), "args": (torch.randn(5, 2, 16), torch.randn(4, 2, 16))}
    yield "nn_encoder_first", lambda: {"model": nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True, activation="gelu"), 2),
                                       "args": (torch.randn(2, 5, 16),), "dynamic": ({0: Dim("batch"), 1: Dim("time")},), "second": (torch.randn(3, 7, 16),)}
    yield "nn_mha", lambda: {"model": Attention(), "args": (torch.randn(2, 5, 16),)}
    yield "nn_ops", lambda: {"model": Mixed(), "args": (torch.randn(2, 3, 8, 8),), "dynamic": ({0: Dim("batch"), 2: Dim("h", min=4), 3: Dim("w", min=4)},),
                             "second": (torch.randn(3, 3, 10, 6),)}
    yield "nn_state", lambda: {"model": Counter(), "args": (torch.randn(2, 4),)}
    yield "nn_inplace", lambda: {"model": InPlace(), "args": (torch.randn(4, 5),)}
    yield "nn_cond", lambda: {"model": Cond(), "args": (torch.randn(4, 5),)}
    yield "nn_nested", lambda: {"model": Nested(), "args": ({"a": torch.randn(2, 3), "b": [torch.randn(3), torch.randn(3)]},)}
    yield "nn_spectrum", lambda: {"model": Spectrum(), "args": (torch.randn(2, 60),), "dynamic": ({0: Dim("batch")},), "second": (torch.randn(3, 60),)}
    yield "nn_alignment", lambda: {"model": Alignment(), "args": (torch.randn(2, 7, 3), torch.randn(2, 7, 3))}
    yield "nn_parametrized", lambda: {"model": nn.Sequential(nn.utils.parametrizations.orthogonal(nn.Linear(5, 3)), nn.utils.parametrizations.orthogonal(nn.Linear(3, 3), orthogonal_map="cayley"),
                                                             nn.utils.parametrizations.orthogonal(nn.Linear(3, 4), orthogonal_map="matrix_exp"), nn.utils.parametrizations.weight_norm(nn.Linear(4, 2)),
                                                             nn.utils.parametrizations.spectral_norm(nn.Linear(2, 3))), "args": (torch.randn(2, 5),)}
    yield "nn_float8", lambda: {"model": Float8(), "args": (torch.randn(4, 16),)}
    yield "nn_padded", lambda: {"model": Padded(), "args": (torch.randn(3, 2), torch.randn(5, 2), torch.randn(1, 2))}
    yield "nn_whitening", lambda: {"model": Whitening(), "args": (torch.randn(2, 20, 5),), "dynamic": ({0: Dim("batch")},), "second": (torch.randn(3, 20, 5),)}
    yield "nn_orthogonal", lambda: {"model": Orthogonal(), "args": (torch.randn(2, 5, 3), torch.randn(3, 4))}


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.mha = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x):
        return self.mha(x, x, x)


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        y = nn.functional.silu(self.norm(self.conv(x)))
        y = nn.functional.interpolate(y, scale_factor=2, mode="bilinear")
        b, c, h, w = y.shape
        tokens = y.view(b, c, h * w).permute(0, 2, 1)
        tokens = torch.cat([tokens, torch.zeros(b, 1, c)], 1)
        return self.head(tokens).softmax(-1), tokens.mean(1), torch.arange(h) * 2


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        self.count += 1
        self.total.add_(x.sum(0))
        return x * self.count + self.total


class InPlace(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[:, 1:3] += 1
        y[0].mul_(2)
        z = y.t()
        z[1].fill_(3)
        y.view(-1)[::3] = 0
        y[y > 1] = 0.5
        return y, z


class Cond(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda a: (a + 1, a.sum()), lambda a: (a * 2, a.mean()), (x,))


class Float8(nn.Module):
    """Weights and activations of 8 bits, scaled by tensor, and by row and column."""

    def __init__(self):
        super().__init__()
        self.register_buffer("first", torch.randn(16, 16).to(torch.float8_e4m3fn))
        self.register_buffer("second", torch.randn(16, 16).to(torch.float8_e4m3fn))
        self.register_buffer("scales", torch.rand(1, 16) + 0.5)
        self.bias = nn.Parameter(torch.randn(16).bfloat16())

    def forward(self, x):
        scale = x.abs().amax() / 448
        y = torch._scaled_mm((x / scale).to(torch.float8_e4m3fn), self.first.t(), scale, torch.tensor(0.25), out_dtype=torch.float32)
        rows = y.abs().amax(1, keepdim=True) / 448
        z = torch._scaled_mm((y / rows).to(torch.float8_e4m3fn), self.second.t(), rows, self.scales, bias=self.bias, out_dtype=torch.bfloat16)
        return y, z


class Padded(nn.Module):
    def forward(self, a, b, c):
        return nn.utils.rnn.pad_sequence([a, b, c]), nn.utils.rnn.pad_sequence([a, b, c], True, -1.0, "left")


class Spectrum(nn.Module):
    """A filter in the spectrum, and the signal back from it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))
        self.gain = nn.Parameter(torch.rand(9, 1))

    def forward(self, x):
        z = torch.stft(x, 16, 4, window=self.window, return_complex=True)
        return torch.istft(z * self.gain, 16, 4, window=self.window), torch.istft(z, 16, 4, window=self.window, length=50, center=True)


class Alignment(nn.Module):
    """The rotation that brings one cloud of points nearest to another one (Kabsch)."""

    def forward(self, x, y):
        a, b = x - x.mean(1, keepdim=True), y - y.mean(1, keepdim=True)
        u, s, vh = torch.linalg.svd(a.mT @ b)
        sign = torch.det(u @ vh)
        turn = torch.stack([torch.ones_like(sign), torch.ones_like(sign), sign], -1)
        rotation = (vh.mT * turn[:, None]) @ u.mT
        return rotation, s, a @ rotation.mT, torch.linalg.matrix_norm(a, 2), torch.linalg.cond(a.mT @ a)


class Whitening(nn.Module):
    def forward(self, x):
        x = x - x.mean(1, keepdim=True)
        values, vectors = torch.linalg.eigh(x.mT @ x / x.shape[1])
        return x @ (vectors * values.rsqrt()[:, None]) @ vectors.mT, values, torch.linalg.eigvalsh(x.mT @ x, UPLO="U")


class Orthogonal(nn.Module):
    def forward(self, x, y):
        q, r = torch.linalg.qr(x)
        whole, _ = torch.linalg.qr(x, mode="complete")
        u, s, vh = torch.linalg.svd(y, full_matrices=False)
        _, t, v = torch.svd(y.mT)
        return q, r, whole[..., :3], (u * s) @ vh, v.abs() * t, torch.linalg.matrix_rank(torch.cat([y, y])), torch.linalg.matrix_norm(y, "nuc")


class Nested(nn.Module):
    def forward(self, d):
        return {"y": d["a"] + d["b"][0], "z": (d["b"][1], None, 3)}


def transformers_networks():
    import transformers as t
    ids = lambda vocab=99, n=7: torch.randint(3, vocab, (2, n))
    common = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, vocab_size=99, max_position_embeddings=64)

    class Tokens(nn.Module):
        def __init__(self, model, **extra):
            super().__init__()
            self.model, self.extra = model, extra

        def forward(self, input_ids):
            out = self.model(input_ids=input_ids, return_dict=False, **self.extra)
            return out[0]

    class Pixels(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(x, return_dict=False)[0]

    class Both(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, input_ids, decoder_input_ids):
            return self.model(input_ids=input_ids, decoder_input_ids=decoder_input_ids, use_cache=False, return_dict=False)[0]
    encoders = {"Bert": {}, "Roberta": {}, "DistilBert": dict(dim=32, n_layers=2, n_heads=4, hidden_dim=37, vocab_size=99), "Electra": dict(embedding_size=16), "Albert": dict(embedding_size=16),
                "DebertaV2": {}, "MPNet": {}, "ModernBert": dict(pad_token_id=0, cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2), "ConvBert": {}, "RoFormer": {}, "XLMRoberta": {}}
    for name, extra in encoders.items():
        def build(name=name, extra=extra):
            config = getattr(t, name + "Config")(**({**common, **extra} if name != "DistilBert" else extra))
            return {"model": Tokens(getattr(t, name + "Model")(config)), "args": (ids(),), "dynamic": ({0: Dim("batch", max=16), 1: Dim("time", min=2, max=32)},), "second": (torch.randint(3, 99, (3, 9)),)}
        yield "hf_" + name, build
    decoders = {"GPT2": dict(n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=64), "Llama": dict(common, num_key_value_heads=2), "Mistral": dict(common, num_key_value_heads=2),
                "Qwen2": dict(common, num_key_value_heads=2), "Qwen3": dict(common, num_key_value_heads=2, head_dim=8), "Gemma": dict(common, num_key_value_heads=2, head_dim=8), "Phi": dict(common), "GPTNeoX": dict(common),
                "OPT": dict(common, ffn_dim=37, word_embed_proj_dim=32), "Bloom": dict(hidden_size=32, n_layer=2, n_head=4, vocab_size=99), "Falcon": dict(common), "StableLm": dict(common), "Olmo": dict(common)}
    for name, config in decoders.items():
        def build(name=name, config=config):
            made = getattr(t, name + "Config")(**config)
            model = getattr(t, name + ("LMHeadModel" if name == "GPT2" else "ForCausalLM"))(made)
            return {"model": Tokens(model, use_cache=False), "args": (ids(),), "dynamic": ({0: Dim("batch", max=16), 1: Dim("time", min=2, max=32)},), "second": (torch.randint(3, 99, (3, 9)),)}
        yield "hf_" + name, build
    vision = {"ViT": dict(image_size=32, patch_size=8), "Deit": dict(image_size=32, patch_size=8), "ConvNext": dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]), "ResNet": dict(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]),
              "Swin": dict(image_size=32, patch_size=2, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=2), "Dinov2": dict(image_size=32, patch_size=8), "Segformer": dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1])}
    for name, extra in vision.items():
        def build(name=name, extra=extra):
            config = getattr(t, {"Deit": "DeiT"}.get(name, name) + "Config")(**({**{k: v for k, v in common.items() if k in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")}, **extra} if name in ("ViT", "Deit", "Dinov2") else extra))
            return picture_case(Pixels(getattr(t, {"Deit": "DeiT"}.get(name, name) + "Model")(config)), 32)
        yield "hf_" + name, build
    yield "hf_T5", lambda: {"model": Both(t.T5ForConditionalGeneration(t.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4, decoder_start_token_id=0))), "args": (ids(), ids(n=5))}
    yield "hf_Bart", lambda: {"model": Both(t.BartForConditionalGeneration(t.BartConfig(vocab_size=99, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37, max_position_embeddings=64))), "args": (ids(), ids(n=5))}
    yield "hf_Wav2Vec2", lambda: {"model": Pixels(t.Wav2Vec2Model(t.Wav2Vec2Config(hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=37, conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2, vocab_size=32))), "args": (torch.randn(1, 800),)}


def cached_and_multimodal_networks():
    import transformers as t
    common = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, vocab_size=99, max_position_embeddings=64)
    tokens = lambda *shape: torch.randint(3, 99, shape)

    class Cached(nn.Module):
        """One more token with what came before: keys and values are inputs and outputs."""

        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, input_ids, *past):
            cache = t.DynamicCache()
            for i in range(0, len(past), 2):
                cache.update(past[i], past[i + 1], i // 2)
            out = self.model(input_ids=input_ids, past_key_values=cache, use_cache=True)
            return (out.logits, *[x for layer in out.past_key_values.layers for x in (layer.keys, layer.values)])
    for name in ("Llama", "Qwen2", "Mistral"):
        def build(name=name):
            config = getattr(t, name + "Config")(**common, num_key_value_heads=2)
            past = lambda n: [torch.randn(2, 2, n, 8) for _ in range(4)]
            time = Dim("past", min=2, max=48)
            return {"model": Cached(getattr(t, name + "ForCausalLM")(config)), "args": (tokens(2, 1), *past(5)),
                    "dynamic": (None, tuple({2: time} for _ in range(4))), "second": (tokens(2, 1), *past(9))}
        yield "hf_%s_cached" % name, build

    class Pair(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, input_ids, pixel_values):
            out = self.model(input_ids=input_ids, pixel_values=pixel_values)
            return out.logits_per_image, out.text_embeds
    small = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37)
    for name in ("CLIP", "Siglip"):
        def build(name=name):
            text = dict(small, vocab_size=99, max_position_embeddings=16, eos_token_id=2, bos_token_id=1, pad_token_id=0)
            config = getattr(t, name + "Config")(text_config=text, vision_config=dict(small, image_size=32, patch_size=8))
            return {"model": Pair(getattr(t, name + "Model")(config)), "args": (tokens(2, 16), torch.randn(2, 3, 32, 32))}
        yield "hf_" + name, build

    class Speech(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, features, decoder_input_ids):
            return self.model(input_features=features, decoder_input_ids=decoder_input_ids, use_cache=False).logits
    yield "hf_Whisper", lambda: {"model": Speech(t.WhisperForConditionalGeneration(t.WhisperConfig(
        vocab_size=99, num_mel_bins=8, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37,
        max_source_positions=20, max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None))),
        "args": (torch.randn(2, 8, 40), tokens(2, 5))}


def more_transformers_networks():
    """What the two functions above lack of the architectures in use."""
    import transformers as t
    small = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37)
    text = dict(small, vocab_size=99, max_position_embeddings=64)
    tokens = lambda *shape: torch.randint(3, 99, shape)

    class Last(nn.Module):
        """One result of a model that is called with named arguments."""

        def __init__(self, model, names, result="last_hidden_state", **more):
            super().__init__()
            self.model, self.names, self.result, self.more = model, names, result, more

        def forward(self, *given):
            out = self.model(**dict(zip(self.names, given)), **self.more)
            return tuple(out[name] for name in self.result.split()) if " " in self.result else out[self.result]

    def case(model, names, args, result="last_hidden_state", second=None, dynamic=None, **more):
        found = {"model": Last(stir(model), names.split(), result, **more), "args": args}
        if second:
            found.update(second=second, dynamic=(dynamic,))
        return found
    time = lambda: {0: Dim("batch", max=16), 1: Dim("time", min=2, max=32)}

    def decoder(config, model, **more):
        return case(model(config), "input_ids", (tokens(2, 7),), "logits", (tokens(3, 9),), (time(),), use_cache=False, **more)
    grouped = dict(text, num_key_value_heads=2, head_dim=8)
    moe = dict(grouped, num_experts_per_tok=2, intermediate_size=48)
    yield "hf_Gemma2", lambda: decoder(t.Gemma2Config(**grouped, sliding_window=4), t.Gemma2ForCausalLM)
    yield "hf_Gemma3", lambda: decoder(t.Gemma3TextConfig(**grouped, sliding_window=4, sliding_window_pattern=2), t.Gemma3ForCausalLM)
    yield "hf_Phi3", lambda: decoder(t.Phi3Config(**text, num_key_value_heads=2, pad_token_id=0), t.Phi3ForCausalLM)
    yield "hf_Mamba", lambda: decoder(t.MambaConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, state_size=4), t.MambaForCausalLM)
    yield "hf_Mamba_static", lambda: case(t.MambaForCausalLM(t.MambaConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, state_size=4)), "input_ids", (tokens(2, 7),), "logits", use_cache=False)
    yield "hf_Mixtral", lambda: decoder(t.MixtralConfig(**moe, num_local_experts=4), t.MixtralForCausalLM)
    yield "hf_Qwen2Moe", lambda: decoder(t.Qwen2MoeConfig(**dict(text, num_key_value_heads=2), num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=16), t.Qwen2MoeForCausalLM)
    yield "hf_Olmo2", lambda: decoder(t.Olmo2Config(**text), t.Olmo2ForCausalLM)
    yield "hf_Cohere", lambda: decoder(t.CohereConfig(**text), t.CohereForCausalLM)
    yield "hf_CodeGen", lambda: decoder(t.CodeGenConfig(vocab_size=99, n_positions=64, n_embd=32, n_layer=2, n_head=4, rotary_dim=4), t.CodeGenForCausalLM)
    yield "hf_GPTJ", lambda: decoder(t.GPTJConfig(vocab_size=99, n_positions=64, n_embd=32, n_layer=2, n_head=4, rotary_dim=4), t.GPTJForCausalLM)
    yield "hf_GPTBigCode", lambda: decoder(t.GPTBigCodeConfig(vocab_size=99, n_positions=64, n_embd=32, n_layer=2, n_head=4), t.GPTBigCodeForCausalLM)
    yield "hf_SmolLM3", lambda: decoder(t.SmolLM3Config(**dict(text, num_key_value_heads=2), pad_token_id=0), t.SmolLM3ForCausalLM)
    yield "hf_Granite", lambda: decoder(t.GraniteConfig(**dict(text, num_key_value_heads=2)), t.GraniteForCausalLM)

    def encoder(config, model):
        return case(model(config), "input_ids attention_mask", (tokens(2, 7), torch.tensor([[1] * 7, [1] * 5 + [0] * 2])), "last_hidden_state",
                    (tokens(3, 9), torch.tensor([[1] * 9, [1] * 4 + [0] * 5, [1] * 8 + [0]])), (time(), time()))
    yield "hf_Bert_masked", lambda: encoder(t.BertConfig(**text), t.BertModel)
    yield "hf_Roberta_masked", lambda: encoder(t.RobertaConfig(**text), t.RobertaModel)
    yield "hf_Deberta", lambda: encoder(t.DebertaConfig(**text), t.DebertaModel)
    yield "hf_Deberta_relative", lambda: encoder(t.DebertaConfig(**text, relative_attention=True, pos_att_type=["c2p", "p2c"]), t.DebertaModel)
    yield "hf_DebertaV2_relative", lambda: encoder(t.DebertaV2Config(**text, relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8), t.DebertaV2Model)
    yield "hf_MPNet_masked", lambda: encoder(t.MPNetConfig(**text), t.MPNetModel)
    yield "hf_XLMRoberta_masked", lambda: encoder(t.XLMRobertaConfig(**text), t.XLMRobertaModel)
    yield "hf_ModernBert_masked", lambda: encoder(t.ModernBertConfig(**text, pad_token_id=0, cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2), t.ModernBertModel)
    yield "hf_FNet", lambda: case(t.FNetModel(t.FNetConfig(**{k: v for k, v in text.items() if k != "num_attention_heads"})), "input_ids", (tokens(2, 7),))
    yield "hf_Funnel", lambda: case(t.FunnelModel(t.FunnelConfig(vocab_size=99, block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=37, num_decoder_layers=1)), "input_ids", (tokens(2, 8),))
    yield "hf_SqueezeBert", lambda: encoder(t.SqueezeBertConfig(**dict(text, intermediate_size=64), embedding_size=32, q_groups=2, k_groups=2, v_groups=2, post_attention_groups=1, intermediate_groups=2, output_groups=2), t.SqueezeBertModel)

    def pair(config, model, **more):
        return case(model(config), "input_ids decoder_input_ids", (tokens(2, 7), tokens(2, 5)), "logits", (tokens(3, 9), tokens(3, 4)),
                    ({0: (batch := Dim("batch", max=16)), 1: Dim("time", min=2, max=32)}, {0: batch, 1: Dim("steps", min=2, max=32)}), use_cache=False, **more)
    two = dict(vocab_size=99, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37, max_position_embeddings=64)
    yield "hf_T5_dynamic", lambda: pair(t.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4, decoder_start_token_id=0), t.T5ForConditionalGeneration)
    yield "hf_MT5_gated", lambda: pair(t.MT5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4, decoder_start_token_id=0), t.MT5ForConditionalGeneration)
    yield "hf_Bart_dynamic", lambda: pair(t.BartConfig(**two), t.BartForConditionalGeneration)
    yield "hf_Marian", lambda: pair(t.MarianConfig(**two, pad_token_id=0, decoder_start_token_id=0), t.MarianMTModel)
    yield "hf_Pegasus", lambda: pair(t.PegasusConfig(**two, pad_token_id=0), t.PegasusForConditionalGeneration)
    yield "hf_M2M100", lambda: pair(t.M2M100Config(**two, pad_token_id=1), t.M2M100ForConditionalGeneration)

    class CachedPair(nn.Module):
        """One step of a decoder with the encoder's result and what came before."""

        def __init__(self, model, layers):
            super().__init__()
            self.model, self.layers = model, layers

        def forward(self, encoded, decoder_input_ids, *past):
            own, cross = t.DynamicCache(), t.DynamicCache()
            for i in range(self.layers):
                own.update(past[4 * i], past[4 * i + 1], i)
                cross.update(past[4 * i + 2], past[4 * i + 3], i)
            cache = t.EncoderDecoderCache(own, cross)
            from transformers.modeling_outputs import BaseModelOutput
            out = self.model(encoder_outputs=BaseModelOutput(last_hidden_state=encoded), decoder_input_ids=decoder_input_ids, past_key_values=cache, use_cache=True)
            return (out.logits, *[x for layer in out.past_key_values.self_attention_cache.layers for x in (layer.keys, layer.values)])

    def cached_pair(model):
        past = lambda n, m: [torch.randn(2, 4, k, 8) for k in (n, n, m, m)]
        own, cross = Dim("past", min=2, max=32), Dim("source", min=2, max=32)
        return {"model": CachedPair(stir(model), 1), "args": (torch.randn(2, 6, 32), tokens(2, 1), *past(4, 6)), "second": (torch.randn(2, 9, 32), tokens(2, 1), *past(7, 9)),
                "dynamic": ({1: cross}, None, ({2: own}, {2: own}, {2: cross}, {2: cross}))}
    yield "hf_Bart_cached", lambda: cached_pair(t.BartForConditionalGeneration(t.BartConfig(**two)))
    yield "hf_T5_cached", lambda: cached_pair(t.T5ForConditionalGeneration(t.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=1, num_heads=4, decoder_start_token_id=0)))

    class Cached(nn.Module):
        """As in cached_and_multimodal_networks, for models with other names of their sizes."""

        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, input_ids, *past):
            cache = t.DynamicCache()
            for i in range(0, len(past), 2):
                cache.update(past[i], past[i + 1], i // 2)
            out = self.model(input_ids=input_ids, past_key_values=cache, use_cache=True)
            return (out.logits, *[x for layer in out.past_key_values.layers for x in (layer.keys, layer.values)])

    def cached(model, heads, steps=1):
        past = lambda n: [torch.randn(2, heads, n, 8) for _ in range(4)]
        length = Dim("past", min=2, max=48)
        return {"model": Cached(stir(model)), "args": (tokens(2, steps), *past(5)), "dynamic": (None, tuple({2: length} for _ in range(4))), "second": (tokens(2, steps), *past(9))}
    gpt = dict(vocab_size=99, n_positions=64, n_embd=32, n_layer=2, n_head=4)
    yield "hf_GPT2_cached", lambda: cached(t.GPT2LMHeadModel(t.GPT2Config(**gpt)), 4)
    yield "hf_GPT2_cached_many", lambda: cached(t.GPT2LMHeadModel(t.GPT2Config(**gpt)), 4, 3)
    yield "hf_GPTNeoX_cached", lambda: cached(t.GPTNeoXForCausalLM(t.GPTNeoXConfig(**text)), 4)
    yield "hf_Phi_cached", lambda: cached(t.PhiForCausalLM(t.PhiConfig(**text)), 4)
    yield "hf_Gemma_cached", lambda: cached(t.GemmaForCausalLM(t.GemmaConfig(**grouped)), 2)
    yield "hf_Gemma2_cached", lambda: cached(t.Gemma2ForCausalLM(t.Gemma2Config(**grouped)), 2)
    yield "hf_Qwen3_cached", lambda: cached(t.Qwen3ForCausalLM(t.Qwen3Config(**grouped)), 2, 3)
    yield "hf_OPT_cached", lambda: cached(t.OPTForCausalLM(t.OPTConfig(**{k: v for k, v in text.items() if k != "intermediate_size"}, ffn_dim=37, word_embed_proj_dim=32)), 4)
    yield "hf_Falcon_cached", lambda: cached(t.FalconForCausalLM(t.FalconConfig(**text, multi_query=False, new_decoder_architecture=False)), 4)
    yield "hf_StableLm_cached", lambda: cached(t.StableLmForCausalLM(t.StableLmConfig(**text)), 4)
    yield "hf_Bloom_cached", lambda: cached(t.BloomForCausalLM(t.BloomConfig(hidden_size=32, n_layer=2, n_head=4, vocab_size=99)), 4)
    yield "hf_Mixtral_cached", lambda: cached(t.MixtralForCausalLM(t.MixtralConfig(**moe, num_local_experts=4)), 2)

    def pixels(config, model, result="last_hidden_state", side=32, dynamic=True):
        found = case(model(config), "pixel_values", (torch.randn(2, 3, side, side),), result)
        if dynamic:
            found.update(second=(torch.randn(3, 3, side, side),), dynamic=(({0: Dim("batch", max=16)},),))
        return found
    patches = dict(small, image_size=32, patch_size=8)
    yield "hf_Beit", lambda: pixels(t.BeitConfig(**patches, use_relative_position_bias=True), t.BeitModel)
    yield "hf_MobileViT", lambda: pixels(t.MobileViTConfig(image_size=64, hidden_sizes=[12, 16, 20], neck_hidden_sizes=[8, 8, 12, 12, 16, 20, 24], num_attention_heads=4, expand_ratio=1.0, mlp_ratio=1.0), t.MobileViTModel, side=64)
    yield "hf_MobileViTV2", lambda: pixels(t.MobileViTV2Config(image_size=64, base_attn_unit_dims=[8, 8, 8], n_attn_blocks=[1, 1, 1]), t.MobileViTV2Model, side=64)
    yield "hf_MobileNetV2", lambda: pixels(t.MobileNetV2Config(depth_multiplier=0.35), t.MobileNetV2Model)
    yield "hf_Dinov2_registers", lambda: pixels(t.Dinov2WithRegistersConfig(**{k: v for k, v in patches.items() if k != "intermediate_size"}, num_register_tokens=2), t.Dinov2WithRegistersModel)
    yield "hf_Segformer_head", lambda: pixels(t.SegformerConfig(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_labels=4, decoder_hidden_size=16), t.SegformerForSemanticSegmentation, "logits", 64)
    yield "hf_DPT", lambda: pixels(t.DPTConfig(**{k: v for k, v in patches.items() if k != "num_hidden_layers"}, backbone_out_indices=[0, 1, 2, 3], num_hidden_layers=4, neck_hidden_sizes=[8, 8, 8, 8], fusion_hidden_size=8), t.DPTForDepthEstimation, "predicted_depth")
    yield "hf_Swinv2", lambda: pixels(t.Swinv2Config(image_size=32, patch_size=2, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4), t.Swinv2Model)
    yield "hf_ConvNextV2", lambda: pixels(t.ConvNextV2Config(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]), t.ConvNextV2Model)
    yield "hf_PoolFormer", lambda: pixels(t.PoolFormerConfig(hidden_sizes=[8, 8, 12, 12], depths=[1, 1, 1, 1]), t.PoolFormerModel)
    yield "hf_Levit", lambda: pixels(t.LevitConfig(image_size=64, hidden_sizes=[16, 32, 48], num_attention_heads=[1, 2, 3], depths=[2, 2, 2], key_dim=[8, 8, 8], mlp_ratio=[2, 2, 2], attention_ratio=[2, 2, 2]), t.LevitModel, side=64)
    yield "hf_Yolos", lambda: pixels(t.YolosConfig(**dict(patches, image_size=[32, 32]), num_detection_tokens=5), t.YolosForObjectDetection, "logits pred_boxes")
    yield "hf_Detr", lambda: pixels(t.DetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 8, 12, 16], depths=[1, 1, 1, 1], out_features=["stage4"]),
                                                 d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37, num_queries=6, num_labels=5), t.DetrForObjectDetection, "logits pred_boxes", 64, False)

    speech = dict(small, conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2, num_feat_extract_layers=2, vocab_size=32)

    def waves(config, model, result="last_hidden_state"):
        return case(model(config), "input_values", (torch.randn(2, 800),), result, (torch.randn(3, 800),), ({0: Dim("batch", max=16)},))
    yield "hf_Wav2Vec2_dynamic", lambda: waves(t.Wav2Vec2Config(**speech), t.Wav2Vec2Model)
    yield "hf_Wav2Vec2_ctc", lambda: waves(t.Wav2Vec2Config(**speech, do_stable_layer_norm=True, feat_extract_norm="layer"), t.Wav2Vec2ForCTC, "logits")
    yield "hf_Hubert", lambda: waves(t.HubertConfig(**speech), t.HubertModel)
    yield "hf_WavLM", lambda: waves(t.WavLMConfig(**speech), t.WavLMModel)
    yield "hf_SEW", lambda: waves(t.SEWConfig(**speech, squeeze_factor=2), t.SEWModel)
    yield "hf_AST", lambda: case(t.ASTModel(t.ASTConfig(**small, max_length=32, num_mel_bins=16, patch_size=8, frequency_stride=4, time_stride=4)), "input_values", (torch.randn(2, 32, 16),), "last_hidden_state", (torch.randn(3, 32, 16),), ({0: Dim("batch", max=16)},))
    yield "hf_Whisper_encoder", lambda: case(t.WhisperForConditionalGeneration(t.WhisperConfig(vocab_size=99, num_mel_bins=8, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37, max_source_positions=20, max_target_positions=16, pad_token_id=0)).get_encoder(), "input_features", (torch.randn(2, 8, 40),), "last_hidden_state", (torch.randn(3, 8, 40),), ({0: Dim("batch", max=16)},))
    yield "hf_SpeechT5_encoder", lambda: waves(t.UniSpeechConfig(**speech), t.UniSpeechModel)

    vision = dict(small, image_size=32, patch_size=8)
    written = dict(small, vocab_size=99, max_position_embeddings=16, bos_token_id=1, eos_token_id=2, pad_token_id=0)
    yield "hf_Blip", lambda: case(t.BlipForConditionalGeneration(t.BlipConfig(text_config=dict(written, encoder_hidden_size=32, is_decoder=True), vision_config=vision)), "pixel_values input_ids", (torch.randn(2, 3, 32, 32), tokens(2, 6)), "logits")
    yield "hf_Blip_text", lambda: case(t.BlipTextModel(t.BlipTextConfig(**written, encoder_hidden_size=32)), "input_ids", (tokens(2, 6),), is_decoder=False)
    yield "hf_AltCLIP_vision", lambda: pixels(t.CLIPVisionConfig(**vision), t.CLIPVisionModel)
    yield "hf_ChineseCLIP_vision", lambda: pixels(t.ChineseCLIPVisionConfig(**vision), t.ChineseCLIPVisionModel)

    def llava():
        config = t.LlavaConfig(vision_config=t.CLIPVisionConfig(**vision), text_config=t.LlamaConfig(**text), image_token_index=98, image_seq_length=16, vision_feature_layer=-1)
        ids = torch.cat([tokens(2, 2) % 90 + 3, torch.full((2, 16), 98), tokens(2, 4) % 90 + 3], 1)
        return case(t.LlavaForConditionalGeneration(config), "input_ids pixel_values", (ids, torch.randn(2, 3, 32, 32)), "logits", use_cache=False)
    yield "hf_Llava", llava
    yield "hf_Vilt", lambda: case(t.ViltModel(t.ViltConfig(**dict(text, image_size=32, patch_size=8), max_image_length=-1)), "input_ids pixel_values", (tokens(2, 6), torch.randn(2, 3, 32, 32)))
    yield "hf_TimeSformer", lambda: case(t.TimesformerModel(t.TimesformerConfig(**vision, num_frames=2)), "pixel_values", (torch.randn(2, 2, 3, 32, 32),))
    yield "hf_VideoMAE", lambda: case(t.VideoMAEModel(t.VideoMAEConfig(**vision, num_frames=4)), "pixel_values", (torch.randn(2, 4, 3, 32, 32),))
    yield "hf_Patchtst", lambda: case(t.PatchTSTModel(t.PatchTSTConfig(num_input_channels=2, context_length=32, patch_length=8, patch_stride=4, d_model=32, num_attention_heads=4, num_hidden_layers=1, ffn_dim=37)), "past_values", (torch.randn(2, 32, 2),))


def picture_case(model, size):
    return picture(model, size)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(32, 48), nn.Linear(48, 16)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, groups=4), nn.Linear(8, 5)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        y = torch.relu(self.norm(self.a(x)))
        y = torch.relu(self.b(y)) + y[:, :, 1:-1, 1:-1]
        return self.c(y.mean((2, 3)))


def quantised_networks():
    """Weights and activations of few bits, as torchao makes them; needs torchao."""
    import torchao.quantization as q

    def affine(config):
        model = Perceptron().eval()
        q.quantize_(model, config)
        return {"model": model, "args": (torch.randn(3, 32),)}
    yield "ao_int8_weight", lambda: affine(q.Int8WeightOnlyConfig())
    yield "ao_int8_dynamic", lambda: affine(q.Int8DynamicActivationInt8WeightConfig())
    yield "ao_int4_groups", lambda: affine(q.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=q.PerGroup(16)))
    yield "ao_int4_groups_asymmetric", lambda: affine(q.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=q.PerGroup(16), mapping_type=q.MappingType.ASYMMETRIC))
    yield "ao_int4_rows", lambda: affine(q.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=q.PerAxis(0)))
    yield "ao_int2_rows", lambda: affine(q.IntxWeightOnlyConfig(weight_dtype=torch.int2, granularity=q.PerAxis(0)))
    yield "ao_int8_dynamic_int4", lambda: affine(q.Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=q.PerGroup(16)))
    yield "ao_float8_weight", lambda: affine(q.Float8WeightOnlyConfig())

    def converted(model, args, dynamic=False):
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
        from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
        quantizer = x86.X86InductorQuantizer()
        quantizer.set_global(x86.get_default_x86_inductor_quantization_config(is_dynamic=dynamic))
        prepared = prepare_pt2e(torch.export.export(model.eval(), args).module(), quantizer)
        for _ in range(3):
            prepared(*[torch.randn_like(a) for a in args])
        made = convert_pt2e(prepared)

        class Whole(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = made

            def forward(self, x):
                return self.inner(x)

            def eval(self):
                return self
        return {"model": Whole(), "args": args}
    yield "pt2e_linear", lambda: converted(Perceptron(), (torch.randn(3, 32),))
    yield "pt2e_linear_dynamic", lambda: converted(Perceptron(), (torch.randn(3, 32),), True)
    yield "pt2e_convolution", lambda: converted(stir(Convolutions()), (torch.randn(2, 3, 8, 8),))


def all_networks():
    for group in (plain_networks, quantised_networks, recurrent_networks, timm_networks, transformers_networks, cached_and_multimodal_networks, more_transformers_networks, torchvision_networks):
        try:
            yield from group()
        except Exception as error:
            print("cannot list %s: %s" % (group.__name__, error))
