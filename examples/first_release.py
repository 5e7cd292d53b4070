"""A count and a mean of a small table, released with error bars."""

import numpy as np

import deniable as dp

ages = np.array([34, 71, 65, 22, 58, 80, 47, 66, 39, 70])

count = dp.Geometric(epsilon=0.5, sensitivity=1)  # a person adds one row
total = dp.Laplace(epsilon=0.5, sensitivity=110)  # ages are clamped to [0, 110]

n = count.release(int(ages.size))
age_sum = total.release(int(ages.clip(0, 110).sum()))

print(f"people:      {n} ± {count.error(confidence=0.95)}")
print(f"sum of ages: {age_sum:.0f} ± {total.error(confidence=0.95):.0f}")
print(f"both cost:   {dp.compose(count.loss, total.loss).epsilon(delta=0):g}-DP")
