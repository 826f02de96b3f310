"""Names that tools use for the things of a training step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

NAMES = {
    "end_utc": ("time", "timestamp", "ts", "_timestamp", "datetime", "wall_time", "date", "created_at"),
    "run_id": ("run", "run_id", "run_name", "experiment", "job", "job_id", "trial_id"),
    "step": ("step", "global_step", "iteration", "iter", "_step", "current_steps", "train/global_step", "trainer/global_step",
        "global_step/max_steps", "training_iteration"),
    "epoch": ("epoch", "train/epoch", "trainer/epoch", "current_epoch"),
    "step_time_s": (
        "step_time_s", "step_time", "step_time (s)", "iteration_time_s", "time_per_step_s", "elapsed_s", "train/step_time_s",
        "time_this_iter_s",
    ),
    "tokens": ("tokens", "step_tokens", "num_tokens", "tokens_per_step", "train/tokens"),
    "tokens_seen": (
        "tokens_seen", "num_input_tokens_seen", "train/num_input_tokens_seen", "consumed_tokens", "cumulative_tokens",
        "train/tokens_seen", "total_tokens_seen",
    ),
    "samples": ("samples", "num_samples", "examples", "num_env_steps_sampled_this_iter", "timesteps_this_iter"),
    "loss": (
        "loss", "train_loss", "train/loss", "lm_loss", "lm loss", "training_loss", "train_loss_step", "train/loss_step",
        "loss/train", "training/loss", "epoch_loss", "total_loss",
        "info/learner/default_policy/learner_stats/total_loss", "learners/default_policy/total_loss",
    ),
    "batch_size": ("batch_size", "global_batch_size", "global batch size", "train_batch_size", "train/batch_size", "batch-size"),
    "learning_rate": (
        "learning_rate", "lr", "train/learning_rate", "train/lr", "learning rate", "lr-adam", "lr-adamw", "lr-sgd",
        "learning-rate", "epoch_learning_rate", "train_lr",
    ),
    "tokens_per_s": ("tokens_per_s", "tokens_per_sec", "tokens_per_second", "train/tokens_per_second", "throughput_tokens_per_s"),
    "utilization_ratio": (
        "utilization_ratio", "mean_utilization_ratio", "gpu_utilization_ratio", "utilization_pct", "mean_utilization_pct",
        "gpu_utilization_pct", "gpu_util_pct", "utilization_percent", "gpu_utilization_percent",
    ),
    "power_w": ("board_power_w", "mean_board_power_w", "gpu_power_w", "mean_gpu_power_w", "mean_power_w"),
}  # fmt: skip
"""Names of a step's things, the usual one first; compared without regard to case."""

VALUES = ("step_time_s", "tokens", "tokens_seen", "samples", "loss", "batch_size", "learning_rate")
"""What a line says of a step besides its number and time."""

REPORTED = ("tokens_per_s", "utilization_ratio", "power_w")
"""Means since the line before, which some loops print every so many steps."""


_IN_EPOCH = ("batch", "batch_idx", "batch_id", "batch_index", "batch_number", "minibatch")
"""Names of the place in an epoch, which number the steps where an epoch stands beside them."""


def known_names(names: Sequence[str]) -> dict[str, str]:
    """Return which of a log's names stands for which thing of a step.

    Examples
    --------
    >>> known_names(["Time", "step", "train_loss", "grad_norm"])
    {'end_utc': 'Time', 'step': 'step', 'loss': 'train_loss'}
    """
    by_folded = {n.strip().lower(): n for n in reversed(names)}
    found = {}
    for quantity, choices in NAMES.items():
        name = next((by_folded[c] for c in choices if c in by_folded), None)
        if name is not None:
            found[quantity] = name
    return found


def known_of_epochs(names: Sequence[str]) -> dict[str, str]:
    """Return the same of a log whose steps have no number: where they have a loss, batches or else epochs number them.

    Examples
    --------
    >>> known_of_epochs(["epoch", "train_loss", "train_lr"])
    {'epoch': 'epoch', 'loss': 'train_loss', 'learning_rate': 'train_lr', 'step': 'epoch'}
    """
    known = known_names(names)
    by_folded = {n.strip().lower(): n for n in reversed(names)}
    number = next((by_folded[n] for n in (*_IN_EPOCH, "epoch") if n in by_folded and "epoch" in by_folded), None)
    return known | {"step": number} if "step" not in known and "loss" in known and number is not None else known


def tells_of_steps(known: Mapping[str, str]) -> bool:
    """Tell whether these names make a training log: numbered steps with a loss, or with a time and one thing more."""
    told = {q for q in VALUES if q in known}
    return "step" in known and bool(told) and ("end_utc" in known or "loss" in told)
