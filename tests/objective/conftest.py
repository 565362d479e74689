"""One thread for each test process: several threads of several processes wait for each other."""

import torch

torch.set_num_threads(1)
