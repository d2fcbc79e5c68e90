"""LANTM and SLANTM in eager PyTorch, as one would write them down: the yardstick of `lantm bench`.

One step after the other, autograd, memories joined to the earlier ones by `torch.cat`. Nothing here
imports the library; `tests/test_bench.py` checks that it has the same logits and gradients.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# PyTorch is an optional extra.

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as every PyTorch program has it


def shift(raw: Tensor, key: Tensor) -> Tensor:
    """The plane: a shift shorter than 1."""
    return key + raw / torch.sqrt(1 + (raw**2).sum(-1, keepdim=True))


def rotate(raw: Tensor, key: Tensor) -> Tensor:
    """The sphere: Rodrigues' formula, an axis and an angle of at most one radian."""
    axis, angle = F.normalize(raw[:, :3], dim=-1), torch.tanh(raw[:, 3:])
    cos, sin = torch.cos(angle), torch.sin(angle)
    along = (axis * key).sum(-1, keepdim=True)
    return key * cos + torch.linalg.cross(axis, key) * sin + axis * along * (1 - cos)


class Head(nn.Module):
    def __init__(self, sphere: bool, gate_bias: float):
        super().__init__()
        self.key_size, self.action_size = (3, 4) if sphere else (2, 2)
        self.command_size = self.key_size + 1 + self.action_size
        self.sphere, self.gate_bias = sphere, gate_bias
        self.initial = nn.Parameter(torch.empty(self.key_size).uniform_(-1, 1))

    def project(self, key: Tensor) -> Tensor:
        return F.normalize(key, dim=-1) if self.sphere else key

    def forward(self, command: Tensor, key: Tensor) -> Tensor:
        sizes = [self.key_size, 1, self.action_size]
        candidate, gate, action = torch.split(command, sizes, dim=-1)
        gate = torch.sigmoid(gate + self.gate_bias)
        mixed = self.project(gate * self.project(candidate) + (1 - gate) * key)
        return rotate(action, mixed) if self.sphere else shift(action, mixed)


class LieAccessMachine(nn.Module):
    def __init__(
        self,
        vocabulary: int,
        *,
        sphere: bool = False,
        embedding: int = 14,
        hidden: int = 50,
        width: int = 20,
        read_gate_bias: float = 0.0,
        write_gate_bias: float = -10.0,
    ):
        super().__init__()
        self.separator = vocabulary - 2
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.lstm = nn.LSTMCell(embedding + width, hidden)
        self.read_head = Head(sphere, read_gate_bias)
        self.write_head = Head(sphere, write_gate_bias)
        heads = self.read_head.command_size
        self.sizes = [vocabulary, width, 1, 1, heads, heads]
        self.interface = nn.Linear(hidden, sum(self.sizes))
        self.readout = nn.Linear(width, vocabulary)
        for name, size in {
            "initial_hidden": hidden,
            "initial_cell": hidden,
            "initial_reading": width,
            "memory_key": self.read_head.key_size,
            "memory_value": width,
            "memory_strength": 1,
        }.items():
            setattr(self, name, nn.Parameter(torch.empty(size).uniform_(-1, 1)))

    def forward(self, tokens: Tensor, steps: int) -> Tensor:
        """Read the tokens, writing a memory at each; the logits of an answer of `steps` symbols."""
        batch = tokens.shape[0]

        def start(value: Tensor) -> Tensor:
            return value.expand(batch, *value.shape)

        hidden, cell = start(self.initial_hidden), start(self.initial_cell)
        reading = start(torch.tanh(self.initial_reading))
        read_key = start(self.read_head.project(self.read_head.initial))
        write_key = start(self.write_head.project(self.write_head.initial))
        keys = start(self.write_head.project(self.memory_key))[:, None]
        values = start(torch.tanh(self.memory_value))[:, None]
        strengths = start(torch.sigmoid(self.memory_strength - 10))

        questions = self.embedding(tokens).unbind(1)
        placeholder = start(self.embedding.weight[self.separator])
        logits = []
        for t, symbol in enumerate([*questions, *[placeholder] * steps]):
            hidden, cell = self.lstm(torch.cat([symbol, reading], dim=1), (hidden, cell))
            commands = torch.split(self.interface(hidden), self.sizes, dim=1)
            output, value, strength, gate, read, write = commands
            read_key = self.read_head(read, read_key)
            write_key = self.write_head(write, write_key)

            distances = ((keys - read_key[:, None]) ** 2).sum(-1)
            closeness = 1 / (distances + 1e-10)
            scores = closeness / closeness.sum(1, keepdim=True)
            weights = scores * strengths + 1e-9
            weights = weights / weights.sum(1, keepdim=True)
            reading = torch.bmm(weights[:, None], values)[:, 0]

            if t < len(questions):
                keys = torch.cat([keys, write_key[:, None]], dim=1)
                values = torch.cat([values, torch.tanh(value)[:, None]], dim=1)
                strengths = torch.cat([strengths, torch.sigmoid(strength)], dim=1)
            else:
                logits.append(output + torch.sigmoid(gate) * self.readout(reading))
        return torch.stack(logits, dim=1)


def make_step(
    model: str, vocabulary: int, inputs: Tensor, answers: Tensor, *, rate: float, clip: float
) -> Callable[[], float]:
    """A function that makes one training step and returns its loss."""
    torch.set_num_threads(1)
    machine = LieAccessMachine(vocabulary, sphere=model == "slantm")
    optimiser = torch.optim.RMSprop(machine.parameters(), lr=rate, alpha=0.99, eps=1e-8)

    def step() -> float:
        optimiser.zero_grad()
        logits = machine(inputs, answers.shape[1])
        loss = F.cross_entropy(logits.flatten(0, 1), answers.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(machine.parameters(), clip)
        optimiser.step()
        return loss.item()

    return step
