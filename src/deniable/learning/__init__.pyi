"""The names of the namespace, each with its home."""

from .bayes import GaussianNB as GaussianNB
from .blocks import SubsampledEstimator as SubsampledEstimator
from .clustering import KMeans as KMeans
from .linear import LinearRegression as LinearRegression, Ridge as Ridge
from .logistic import LogisticRegression as LogisticRegression
from .pca import PCA as PCA
from .perturbed import PerturbedLogisticRegression as PerturbedLogisticRegression
from .projected import ProjectedDescent as ProjectedDescent
from .scaling import StandardScaler as StandardScaler
from .sgd import SGDClassifier as SGDClassifier
