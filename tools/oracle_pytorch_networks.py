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


def torchvision_networks():
    import torchvision.models as models
    small = {"inception_v3": 299, "vit_h_14": None, "vit_l_16": None, "vit_l_32": None, "vit_b_16": 224, "vit_b_32": 224,
             "vgg11": 224, "alexnet": 224}
    skip = ("vgg13", "vgg16", "vgg19", "regnet_y_128gf", "regnet_y_32gf", "regnet_x_32gf", "regnet_y_16gf", "regnet_x_16gf",
            "wide_resnet101_2", "resnext101", "efficientnet_b7", "efficientnet_b6", "efficientnet_b5", "efficientnet_v2_l",
            "vit_h_14", "vit_l", "convnext_large", "swin_b", "swin_v2_b", "convnext_base", "densenet161", "resnet152")
    for name in models.list_models(module=models):
        if name.startswith(skip):
            continue
        size = 224 if name.startswith(("vit", "swin", "maxvit")) else small.get(name, 64)
        yield "tv_" + name, lambda name=name, size=size: picture(models.get_model(name, weights=None, **(
            {"init_weights": True} if name in ("googlenet", "inception_v3") else {})), size, dynamic=name in ("resnet18", "mobilenet_v2", "squeezenet1_1"))
    for name in ("fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"):
        yield "tv_seg_" + name, lambda name=name: picture(models.get_model(name, weights=None, weights_backbone=None), 64)


def timm_networks():
    import timm
    for name in timm.list_models("test_*"):
        def build(name=name):
            model = timm.create_model(name, pretrained=False)
            config = model.pretrained_cfg
            return picture(model, config["input_size"][-1], dynamic="vit" in name or "resnet" in name)
        yield "timm_" + name, build


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


def picture_case(model, size):
    return picture(model, size)


def all_networks():
    for group in (plain_networks, recurrent_networks, timm_networks, transformers_networks, cached_and_multimodal_networks, torchvision_networks):
        try:
            yield from group()
        except Exception as error:
            print("cannot list %s: %s" % (group.__name__, error))
