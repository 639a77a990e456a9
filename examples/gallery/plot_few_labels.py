"""
Know with few labels
====================

Many predictions, hardly a label, and an adjustment that may or may not help. Only rows whose
decision changes can tell, so ask for their labels, look after each one, and stop when the answer is
there.
"""

# %%
# Naive Bayes on queries of 150 intents. The adjustment sees the predictions of the pool and a class
# balance that is known from elsewhere; no label at all.

import matplotlib.pyplot as plt

import altnorm

pool = altnorm.load_demo().test
normalizer = altnorm.AlternatingNormalizer(reference="all", prior="uniform").fit(pool.proba)
rows = altnorm.ask(normalizer, pool.proba)
print(f"{len(rows)} of {len(pool.proba)} rows change; the first to label are {rows[:5]}")

# %%
# Here the labels are in the file. In your case a person gives them, one after the other.

looks, labels = range(1, 121), pool.codes
answers = [altnorm.judge(normalizer, pool.proba, rows, labels[rows[:n]]) for n in looks]
first = next(answer for answer in answers if answer.decision != "go on")
print(first)

# %%
# The interval for the gain over the whole pool closes in with each label. It is valid at all of
# these looks together, so that nothing is lost by looking. The dashed line is the true gain.

truth = altnorm.judge(normalizer, pool.proba, rows, labels[rows])
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
low, high = ([100 * getattr(a, name) for a in answers] for name in ("ci_low", "ci_high"))
ax.fill_between(looks, low, high, color="#BFDCEB", label="95 % interval, valid at any time")
ax.plot(looks, [100 * a.gain for a in answers], color="#0072B2", label="estimate")
ax.axhline(100 * truth.gain, color="#222222", linewidth=1, linestyle="--", label="true gain")
ax.axhline(0, color="#9A9A9A", linewidth=1)
ax.axvline(first.n_labelled, color="#D55E00", linewidth=1.2, label=f"answer: {first.decision}")
ax.set(xlabel="labels", ylabel="gain in accuracy, points", xlim=(1, 120))
ax.legend(frameon=False)
plt.show()
