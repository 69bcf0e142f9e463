"""An owner: bids its private points under the curator's broadcasts, and hands over what is due."""
