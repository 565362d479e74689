"""What the features are for: matching, pose, localization, retrieval, segmentation."""
