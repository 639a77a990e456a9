"""What the two multi-label studies of the paper's Table 1 share: DialogRE and entity typing."""
