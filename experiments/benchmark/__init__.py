"""An open benchmark: data inside wheels, classifiers of scikit-learn, and what others would do."""
