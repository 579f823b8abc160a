"""Moderated variances: what all comparisons of a table say together about each one's spread.

Source: G. K. Smyth, "Linear models and empirical Bayes methods for assessing differential expression in microarray
experiments", Statistical Applications in Genetics and Molecular Biology 3(1), 2004, sections 3 to 6. Four degrees of
freedom are little to learn a variance from; when many comparisons have variances of one size, they lend one another
some. The variances σ² are taken to be s0² · d0 / χ²(d0), and d0 and s0² are found from the sample variances themselves.
"""

from dataclasses import dataclass, replace

import numpy as np

from harness.analysis.statistics import Floats, Logs

#: With fewer comparisons nothing is lent: d0 is then a guess, and intervals covered 92 to 94 % (`make simulate`).
FEWEST = 12

#: A variance that the model gives a probability below this has not the model's size: it stays as it was measured.
REJECTED = 0.05


@dataclass(frozen=True, slots=True)
class Prior:
    """What a variance is before it was measured: `variance` (s0²) with the weight of `freedom` (d0, may be inf)."""

    variance: float
    freedom: float


def moderate(logs: Logs) -> Logs:
    """The same with the variances to use, and their degrees of freedom.

    s̃² = (d0·s0² + d·s²) / (d0 + d), with d0 + d degrees, but never more than all samples have together. A variance
    that is too large to be of the model (F(d, d0) above s²/s0² has a probability below 5 %) is its own, and so are all
    where there are fewer than twelve.
    """
    from scipy.special import chdtrc, fdtrc

    variances, freedom = logs.variance, logs.freedom
    if variances.size < FEWEST:
        return logs
    prior = fit(variances, freedom)
    if np.isinf(prior.freedom):
        moderated, total = np.full_like(variances, prior.variance), np.full_like(freedom, np.inf)
        unlikely = chdtrc(freedom, freedom * variances / prior.variance) < REJECTED
    else:
        total = prior.freedom + freedom
        moderated = (prior.freedom * prior.variance + freedom * variances) / total
        unlikely = fdtrc(freedom, prior.freedom, variances / prior.variance) < REJECTED
    total = np.minimum(total, freedom.sum())
    return replace(
        logs,
        variance=np.where(unlikely, np.maximum(variances, moderated), moderated),
        freedom=np.where(unlikely, freedom, total),
    )


def fit(variances: Floats, freedom: Floats) -> Prior:
    """d0 and s0² by the moments of log s² (Smyth 2004, section 6.2).

    The mean of e = log s² - ψ(d/2) + log(d/2) is log s0² - ψ(d0/2) + log(d0/2), and its variance beyond the mean of
    ψ'(d/2) is ψ'(d0/2). Where the variances scatter no more than samples of one and the same would, d0 is infinite
    and s0² their pooled variance, as in the R package limma of the same author.
    """
    from scipy.special import digamma, polygamma

    logs = np.log(variances) - digamma(freedom / 2.0) + np.log(freedom / 2.0)
    beyond = float(logs.var(ddof=1) - polygamma(1, freedom / 2.0).mean())
    if beyond <= 0.0:
        return Prior(float((freedom * variances).sum() / freedom.sum()), np.inf)
    prior = 2.0 * _inverse_trigamma(beyond)
    return Prior(float(np.exp(logs.mean() + digamma(prior / 2.0) - np.log(prior / 2.0))), prior)


def _inverse_trigamma(value: float) -> float:
    """The y with ψ'(y) = `value` > 0, by Newton's method on 1/ψ' (Smyth 2004, appendix)."""
    from scipy.special import polygamma

    # the method's own limits: beyond them the first terms of ψ', 1/y² + … and 1/y + 1/2y² + …, are exact to six digits
    if value > 1e7:
        return float(1.0 / np.sqrt(value))
    if value < 1e-6:
        return 0.5 + 1.0 / value
    y = 0.5 + 1.0 / value
    for _ in range(50):
        trigamma = float(polygamma(1, y))
        step = trigamma * (1.0 - trigamma / value) / float(polygamma(2, y))
        y += step
        if -step / y < 1e-8:
            break
    return y
