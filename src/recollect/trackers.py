"""Experiment trackers as callbacks: ``from recollect.trackers import MLflowCallback, WandbCallback``."""

from recollect.integrations.trackers.mlflow_callback import MLflowCallback
from recollect.integrations.trackers.wandb_callback import WandbCallback

__all__ = ["MLflowCallback", "WandbCallback"]
