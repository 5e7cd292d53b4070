"""diffprivlib's models on the tasks of `benchmarks/learning.py`; prints JSON."""

import json
import sys
import warnings

import numpy as np
from diffprivlib import models
from learning_tasks import EPSILONS, measured, tasks

warnings.filterwarnings("ignore")


def maker(kind, epsilon):
    def make(width, target):
        ends = (np.full(width, -1.0), np.full(width, 1.0))
        norm = 0.5 * np.sqrt(width)
        if kind == "logistic":
            return models.LogisticRegression(epsilon=epsilon, data_norm=norm)
        if kind == "linear":
            between = (float(target.min()), float(target.max()))
            return models.LinearRegression(epsilon=epsilon, bounds_X=ends, bounds_y=between)
        if kind == "bayes":
            return models.GaussianNB(epsilon=epsilon, bounds=ends)
        if kind == "kmeans":
            return models.KMeans(len(set(target)), epsilon=epsilon, bounds=ends)
        return models.PCA(3, epsilon=epsilon, bounds=ends, data_norm=norm)

    return make


seeds, folder = int(sys.argv[1]), sys.argv[2]
found = []
for kind, name in tasks(folder):
    for epsilon in EPSILONS:
        scores, seconds = measured(kind, name, seeds, folder, maker(kind, epsilon))
        found.append([kind, name, epsilon, scores, seconds])
        print(kind, name, epsilon, file=sys.stderr)
print(json.dumps({"found": found}))
