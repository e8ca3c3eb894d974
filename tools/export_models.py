#!/usr/bin/env python3
"""Exports networks with random weights to ONNX, by both exporters of torch: material for
tools/oracle_optimise.py.

    python tools/export_models.py FOLDER [--only RE]

Needs torch; torchvision, timm and transformers where a row asks for them. What an exporter cannot
do is reported and left out."""
import argparse
import pathlib
import re
import sys
import warnings

import torch
from torch import nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")


def vision(name):
    def make():
        import torchvision.models as models
        size = 299 if "inception" in name else 224
        options = {"aux_logits": False} if name == "googlenet" else {}
        options["init_weights"] = True if name in ("googlenet", "inception_v3") else None
        options = {k: v for k, v in options.items() if v is not None}
        return getattr(models, name)(weights=None, **options), (torch.randn(2, 3, size, size),), {}
    return make


def timm_model(name, size=224):
    def make():
        import timm
        return timm.create_model(name, pretrained=False), (torch.randn(2, 3, size, size),), {}
    return make


def bert_like(kind):
    def make():
        import transformers as t
        small = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=100)
        config = {"bert": lambda: t.BertConfig(**small), "roberta": lambda: t.RobertaConfig(**small),
                  "distilbert": lambda: t.DistilBertConfig(dim=64, n_layers=2, n_heads=4, hidden_dim=128, vocab_size=100),
                  "electra": lambda: t.ElectraConfig(**small, embedding_size=32),
                  "deberta": lambda: t.DebertaV2Config(**small)}[kind]()
        model = t.AutoModel.from_config(config, attn_implementation="eager" if kind == "deberta" else "sdpa")
        ids = torch.randint(0, 100, (2, 7))
        return model, (), {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return make


def decoder(kind, attention="sdpa"):
    def make():
        import transformers as t
        small = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=100)
        config = {"gpt2": lambda: t.GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=100, n_positions=64),
                  "llama": lambda: t.LlamaConfig(**small, num_key_value_heads=2),
                  "qwen2": lambda: t.Qwen2Config(**small, num_key_value_heads=2),
                  "phi": lambda: t.PhiConfig(**small),
                  "opt": lambda: t.OPTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=128,
                                             vocab_size=100, word_embed_proj_dim=64),
                  "gemma": lambda: t.GemmaConfig(**small, num_key_value_heads=1, head_dim=16)}[kind]()
        model = t.AutoModelForCausalLM.from_config(config, attn_implementation=attention)
        model.config.use_cache = False
        ids = torch.randint(0, 100, (2, 7))
        return model, (), {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return make


def other(kind):
    def make():
        import transformers as t
        if kind == "vit":
            config = t.ViTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                                 image_size=32, patch_size=8)
            return t.AutoModel.from_config(config), (torch.randn(2, 3, 32, 32),), {}
        if kind == "swin":
            config = t.SwinConfig(image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)
            return t.AutoModel.from_config(config), (torch.randn(2, 3, 32, 32),), {}
        if kind == "t5":
            config = t.T5Config(d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=100)
            return t.T5EncoderModel(config), (torch.randint(0, 100, (2, 7)),), {}
        if kind == "whisper":
            config = t.WhisperConfig(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                                     decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, vocab_size=100,
                                     max_source_positions=50, num_mel_bins=16, pad_token_id=0, bos_token_id=1,
                                     eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None)
            return t.WhisperModel(config).encoder, (torch.randn(1, 16, 100),), {}
        if kind == "clip":
            config = t.CLIPTextConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=100)
            return t.CLIPTextModel(config), (torch.randint(0, 100, (2, 7)),), {}
    return make


class Attention(nn.Module):
    """Scaled dot-product attention as torch says it, causal or under a mask."""

    def __init__(self, causal, masked):
        super().__init__()
        self.qkv, self.out, self.causal, self.masked = nn.Linear(32, 96), nn.Linear(32, 32), causal, masked

    def forward(self, x, mask):
        b, s, _ = x.shape
        q, k, v = self.qkv(x).reshape(b, s, 3, 4, 8).permute(2, 0, 3, 1, 4)
        bias = mask[:, None, None, :] if self.masked else None
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, s, 32))


class Parts(nn.Module):
    """Normalisations and activations that have to be spelled out in older operator sets."""

    def __init__(self):
        super().__init__()
        self.conv, self.gn, self.inorm = nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.InstanceNorm2d(8, affine=True)
        self.bn, self.ln, self.up = nn.BatchNorm2d(8), nn.LayerNorm(16), nn.ConvTranspose2d(8, 8, 2, 2)

    def forward(self, x):
        x = F.silu(self.gn(self.conv(x)))
        x = F.hardswish(self.inorm(x)) + F.mish(self.bn(x))
        x = F.gelu(self.ln(x)) + F.gelu(x, approximate="tanh")
        x = F.relu6(F.pad(self.up(x), (1, 1, 1, 1)))
        y = F.interpolate(x, scale_factor=2, mode="bilinear")
        return F.log_softmax(y.mean((2, 3)), -1), F.normalize(y.flatten(1), dim=-1), torch.std(y, dim=(2, 3))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.gru = nn.Embedding(50, 16), nn.LSTM(16, 8, bidirectional=True, batch_first=True), nn.GRU(16, 8)
        self.head = nn.Linear(16, 5)

    def forward(self, ids):
        y, (h, c) = self.lstm(self.embed(ids))
        z, _ = self.gru(y.transpose(0, 1))
        return self.head(y), z, h + c


ROWS = {
    **{name: vision(name) for name in ["resnet18", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1",
                                       "densenet121", "efficientnet_b0", "googlenet", "inception_v3", "convnext_tiny", "vit_b_16",
                                       "swin_t", "regnet_y_400mf", "mnasnet0_5", "alexnet", "maxvit_t"]},
    **{"timm_" + name: timm_model(name, size) for name, size in [("deit_tiny_patch16_224", 224), ("mixer_s32_224", 224), ("levit_128s", 224),
       ("mobilevit_xxs", 256), ("edgenext_xx_small", 224), ("efficientformer_l1", 224), ("repvgg_a0", 224), ("ghostnet_050", 224),
       ("poolformer_s12", 224), ("tf_efficientnetv2_b0", 192), ("eva02_tiny_patch14_224", 224)]},
    **{"hf_" + name: bert_like(name) for name in ["bert", "roberta", "distilbert", "electra", "deberta"]},
    **{"hf_" + name: decoder(name) for name in ["gpt2", "llama", "qwen2", "phi", "opt", "gemma"]},
    **{"hf_" + name + "_eager": decoder(name, "eager") for name in ["gpt2", "llama"]},
    **{"hf_" + name: other(name) for name in ["vit", "swin", "t5", "whisper", "clip"]},
    "attention": lambda: (Attention(False, False), (torch.randn(2, 5, 32), torch.ones(2, 5, dtype=torch.bool)), {}),
    "attention_causal": lambda: (Attention(True, False), (torch.randn(2, 5, 32), torch.ones(2, 5, dtype=torch.bool)), {}),
    "attention_masked": lambda: (Attention(False, True), (torch.randn(2, 5, 32), torch.ones(2, 5, dtype=torch.bool)), {}),
    "parts": lambda: (Parts(), (torch.randn(2, 3, 16, 16),), {}),
    "recurrent": lambda: (Recurrent(), (torch.randint(0, 50, (2, 7)),), {}),
}


class Positional(nn.Module):
    """Keyword inputs by position, and the first output alone: what both exporters take."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values):
        result = self.model(**dict(zip(self.names, values))) if self.names else self.model(*values)
        return result[0] if hasattr(result, "keys") or (isinstance(result, tuple) and not isinstance(result[0], tuple) and self.names) else result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--only", default=".")
    parser.add_argument("--exporter", choices=["both", "script", "dynamo"], default="both")
    args = parser.parse_args()
    folder = pathlib.Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for name, make in ROWS.items():
        if not re.search(args.only, name):
            continue
        for exporter in ["script", "dynamo"]:
            out = folder / f"{name}_{exporter}.onnx"
            if out.exists() or args.exporter not in ("both", exporter):
                continue
            try:
                model, values, keywords = make()
                model.eval()
                for module in model.modules():  # statistics that are not 0 and 1
                    if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is not None:
                        module.running_mean.normal_(0, 0.1), module.running_var.uniform_(0.5, 1.5)
                model = Positional(model, list(keywords)) if keywords or name.startswith("hf_") else model
                values = values + tuple(keywords.values())
                with torch.no_grad():
                    if exporter == "script":
                        names = [f"in{i}" for i in range(len(values))]
                        torch.onnx.export(model, values, str(out), dynamo=False, opset_version=17 if "timm" in name else 14 if "hf" in name else 18,
                                          input_names=names, dynamic_axes={n: {0: "batch"} for n in names}, do_constant_folding=name[0] != "m")
                    else:
                        torch.onnx.export(model, values, str(out), dynamo=True, optimize=False, external_data=False, verbose=False)
                print("wrote", out, flush=True)
            except Exception as error:
                out.unlink(missing_ok=True)
                print("left out", out.name, str(error).strip().splitlines()[:1], flush=True)


if __name__ == "__main__":
    sys.exit(main())
